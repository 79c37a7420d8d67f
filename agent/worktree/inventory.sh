# Prints a hash of all that git could find history in: the files of the git
# directory, what is staged, and the remotes. A pack counts by its size, its head
# and its end, since its index, which counts whole, names all objects in it with
# their checksums. The index of staged files counts by what it lists: git
# refreshes the times in it. Links lead to places that are not listed, so that a
# git directory with one has no hash.
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
