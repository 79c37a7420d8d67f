# Writes the marker and a patch to stdout. Set before: marker, base, how ("add":
# everything in the working tree; "apply": base with $patch applied),
# attributes, patch.
#
# All git commands work on a shadow of the repository's git directory, which
# has an index, an object store and attributes of its own, and reads the
# objects of the real one.
set -e
umask 077
tmp=$(mktemp -d 2>/dev/null || mktemp -d -p /dev/shm)
trap 'rm -rf "$tmp"' EXIT
trap 'cat "$tmp/err"' ERR
exec 2>"$tmp/err"

top=$(g rev-parse --show-toplevel)
dir=$(g rev-parse --absolute-git-dir)
common=$(cd "$(g rev-parse --git-common-dir)" && pwd)

shadow=$tmp/git
mkdir -p "$shadow/objects/info" "$shadow/refs" "$shadow/info"
echo "$base" >"$shadow/HEAD"
printf '%s\n' "$common/objects" >"$shadow/objects/info/alternates"
[ ! -f "$common/config" ] || cp "$common/config" "$shadow/config"
for info in "$common/info" "$dir/info"; do
	for file in exclude attributes sparse-checkout; do
		[ ! -f "$info/$file" ] || cp "$info/$file" "$shadow/info/$file"
	done
done
printf '\n%s' "$attributes" >>"$shadow/info/attributes"
export GIT_DIR=$shadow GIT_WORK_TREE=$top
cd "$top"

if [ "$how" = apply ]; then
	g read-tree "$base"
	printf '%s' "$patch" | g apply --cached -
else
	# The index keeps git from reading every file again. A shared or broken
	# one is not taken over.
	[ ! -f "$dir/index" ] || cp "$dir/index" "$shadow/index"
	g status >/dev/null 2>&1 || { rm -f "$shadow/index"; g read-tree "$base"; }
	# Repositories within the tree cannot travel in a patch.
	nested=()
	while IFS= read -r -d '' path; do
		# Git lists what is in folders, but does not look into repositories.
		case $path in */) nested+=(":(exclude,top,literal)${path%/}") ;; esac
	done < <(g ls-files --others --exclude-standard -z)
	g add --all --ignore-errors -- . "${nested[@]}" || true
fi
g diff --cached --binary --full-index --no-renames --no-color --no-ext-diff --no-textconv \
	--src-prefix=a/ --dst-prefix=b/ --ignore-submodules=dirty "$base" >"$tmp/patch"
echo "$marker"
cat "$tmp/patch"
