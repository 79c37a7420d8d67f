# Variables: base, the commit; start, the tree of the state at the start, or
# empty if not known yet; dir, common, top; room, the required free KiB. The
# functions settings, attributes, exclude, junk and start_patch print files.
#
# Makes a shadow git directory with its own index, object store, settings and
# attributes, which reads the objects of the real one. Every git below uses it.
# Of the real git directory it uses only the objects, the index and the lists
# of ignored files, so settings that the agent changed do not apply.
set -e
umask 077
index=$(du -k "$dir/index" 2>/dev/null) || index=0
make_temp $((room + 5 * ${index%%[!0-9]*}))
finish() {
	status=$?
	trap - EXIT
	[ $status -eq 0 ] || dd if="$tmp/err" bs=2048 count=1 2>/dev/null
	cd / && rm -rf "$tmp"
	exit $status
}
trap finish EXIT
exec 2>"$tmp/err"

# small FILE BYTES reports whether it is a regular file of fewer bytes.
small() {
	[ -n "$(find "$1" -prune -type f -size -"$2"c 2>/dev/null)" ]
}

shadow=$tmp/git
mkdir -p "$shadow/objects/info" "$shadow/refs" "$shadow/info"
echo "$base" >"$shadow/HEAD"
printf '%s\n' "$common/objects" >"$shadow/objects/info/alternates"
settings >"$shadow/config"
for info in "$common/info" "$dir/info"; do
	for file in exclude attributes sparse-checkout; do
		! small "$info/$file" 1000000 || cp "$info/$file" "$shadow/info/$file"
	done
done
{ echo; attributes; } >>"$shadow/info/attributes"
exclude >"$tmp/exclude"
junk >"$tmp/junk"
{ echo; cat "$tmp/junk"; } >>"$shadow/info/exclude"
# An empty file and not /dev/null: a program that writes settings replaces the
# file, and as root it would replace the device.
: >"$tmp/gitconfig"
export GIT_DIR="$shadow" GIT_WORK_TREE="$top" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL="$tmp/gitconfig"
cd "$top"
git cat-file -e "$base" || { echo "the commit that the work began with is gone from the repository" >&2; exit 1; }

# started PATCH prints the tree that a patch makes of the commit.
started() {
	(
		export GIT_INDEX_FILE="$tmp/start.index"
		git read-tree "$commit" && git apply --cached --whitespace=nowarn "$1" && git write-tree
	)
}
# From here on, base is the tree that patches are against. mini stores it as a
# patch, because the agent may remove anything in the sandbox.
commit=$base
if [ -n "$start" ]; then
	base=$start
	start_patch >"$tmp/start"
	if [ -s "$tmp/start" ]; then
		[ "$(started "$tmp/start")" = "$start" ] || { echo "the state that the work began with cannot be made again" >&2; exit 1; }
	fi
fi

# changes FROM TO prints the patch between two trees. A rename is a deletion
# and a new file, which every tool can apply.
changes() {
	git diff-tree -r -p --binary --full-index --no-renames --no-color --no-ext-diff --no-textconv -U3 \
		--src-prefix=a/ --dst-prefix=b/ --ignore-submodules=all "$1" "$2"
}

# names FILTER FROM TO prints the paths that differ between two trees.
names() {
	git diff-tree -r -z --name-only --no-renames --ignore-submodules=all --diff-filter="$1" "$2" "$3"
}

# applies PATCH reports whether git apply accepts a patch on the base, and sets
# applied to the resulting tree. It applies the patch to an index, then to
# files. It checks out only the files of the patch and the .gitattributes
# files. Status 1 means that git rejected the patch ($tmp/words has its
# message), 2 that the check failed.
applies() {
	rm -rf "$tmp/clean" "$tmp/clean.index" "$tmp/words"
	mkdir "$tmp/clean" && cd "$tmp/clean" || return 2
	(
		export GIT_WORK_TREE="$tmp/clean" GIT_INDEX_FILE="$tmp/clean.index"
		git read-tree "$base" && cp "$tmp/clean.index" "$tmp/base.index" || exit 2
		git apply --cached --whitespace=nowarn "$1" 2>"$tmp/words" || exit 1
		git write-tree >"$tmp/applied" || exit 2
		after=$(cat "$tmp/applied")
		GIT_INDEX_FILE=$tmp/base.index
		git ls-files -z -- .gitattributes '*/.gitattributes' | git checkout-index -q -f -z --stdin || exit 2
		if grep -q '^copy from ' "$1"; then
			git checkout-index -q -f -a || exit 2
		else
			names a "$base" "$after" | git checkout-index -q -f -z --stdin || exit 2
		fi
		git apply --check --whitespace=nowarn "$1" 2>"$tmp/words" &&
			git apply --whitespace=nowarn "$1" 2>"$tmp/words" || exit 1
		names D "$base" "$after" | git update-index -z --force-remove --stdin || exit 2
		names d "$base" "$after" | git update-index -z --add --replace --stdin || exit 2
		[ "$(git write-tree)" = "$after" ] || {
			echo "applied to files it gives others than applied to the index" >"$tmp/words"
			exit 1
		}
	)
	status=$?
	cd "$top" || return 2
	[ $status -ne 0 ] || applied=$(cat "$tmp/applied")
	return $status
}

# emit STATE TREE prints the output: a line with the marker; a line with the
# state, the tree, the lengths of three parts and the number of omitted names;
# the three parts.
emit() {
	touch "$tmp/words" "$tmp/omitted" "$tmp/patch.out"
	dd if="$tmp/words" bs="${words_most:-2048}" count=1 2>/dev/null >"$tmp/words.cut"
	dd if="$tmp/omitted" bs="${omitted_most:-16384}" count=1 2>/dev/null >"$tmp/omitted.cut"
	echo "$marker"
	echo "$1" "$2" $(wc -c <"$tmp/words.cut") $(wc -c <"$tmp/omitted.cut") $(wc -c <"$tmp/patch.out") $(tr -cd '\000' <"$tmp/omitted" | wc -c)
	cat "$tmp/words.cut" "$tmp/omitted.cut" "$tmp/patch.out"
}
