# Prints a hash of everything in which git could find history: the files of the
# git directory, the staged files and the remotes. Of a pack it hashes the
# size, the start and the end; the pack's index, which is hashed in full, has
# the checksums of all objects. Of the index of staged files it hashes the
# listing, because git updates the times in it. A git directory with links has
# no hash, because links lead to files that are not listed.
set -e
find_top || { echo "no repository"; exit 98; }
dir=$(g rev-parse --absolute-git-dir)
common=$(cd "$(g rev-parse --git-common-dir)" && pwd -P)
cd "$top"
strange=$(find "$dir" "$common" ! -type f ! -type d -print)
[ -z "$strange" ] || { echo "the git directory has links: $strange"; exit 4; }
folders=$(find "$dir" "$common" -type d -print)
files=$(find "$dir" "$common" -type f ! -name '*.pack' ! -path "$dir/index" -exec sha256sum {} +)
packs=$(find "$dir" "$common" -type f -name '*.pack' -exec sh -ec '
	for pack; do
		set -- $(ls -ln "$pack")
		echo "$pack $5 $(head -c 12 "$pack" | sha256sum) $(tail -c 20 "$pack" | sha256sum)"
	done' sh {} +)
staged=$(g ls-files -s)
remotes=$(g remote)
all=$(printf '%s\n' "$top" "$folders" "$files" "$packs" | sort)
printf '%s\n' "$all" "$staged" "$remotes" | sha256sum | cut -d' ' -f1
