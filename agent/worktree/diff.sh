# Takes the patch of everything in the working tree. Set before: limit, the
# size of a patch; new, the size of a file up to which a new one is taken, and
# a quarter of that of a new folder; old, the same for a file that was there;
# all in bytes.
: >"$tmp/omitted"

# The agent's index keeps git from reading every file again. A shared or a
# broken one is not taken over. It keeps its time, by which git knows what may
# have changed in the second in which it was written. What the agent added to it by name is taken
# though the repository ignores it, but for junk.
: >"$tmp/forced"
! small "$dir/index" 200000000 || cp -p "$dir/index" "$shadow/index"
git ls-files >/dev/null 2>&1 || rm -f "$shadow/index"
if [ -f "$shadow/index" ]; then
	cp "$shadow/index" "$tmp/theirs"
	(
		export GIT_INDEX_FILE="$tmp/theirs"
		git ls-files -z -c -i -X "$tmp/junk" | git update-index -z --force-remove --stdin
		git diff-index --cached -z --name-only --no-renames --ignore-submodules=all --diff-filter=A "$base" >"$tmp/forced"
	) || : >"$tmp/forced"
fi
git read-tree --reset "$base"
if git ls-files -v | grep -q '^[a-zS]'; then
	# Bits that hide changes. A sparse checkout has some by right.
	git ls-files -z | git update-index -z --no-assume-unchanged --stdin
	[ "$(git config --bool core.sparseCheckout)" = true ] ||
		git ls-files -z | git update-index -z --no-skip-worktree --stdin
fi

# What is gone goes first: a file that has become a folder hides what is in it.
git diff-files -z --name-only --no-renames --ignore-submodules=all --diff-filter=D | git update-index -z --force-remove --stdin

# each COMMAND FILE runs a command on the names in a file, many at once.
each() {
	[ ! -s "$2" ] || xargs -0 sh -c "$1" sh <"$2"
}
dotted='for f do printf "./%s\0" "$f"; done'

# New files, folders first as a whole. Repositories within the tree cannot
# travel in a patch.
git ls-files -z --others --exclude-standard --directory --no-empty-directory >"$tmp/untracked"
: >"$tmp/files"; : >"$tmp/dirs"; : >"$tmp/new"
export new tmp
if [ "$new" -eq 0 ]; then
	cat "$tmp/untracked" >>"$tmp/omitted"
else
	each 'for f do
		case $f in
		*/)
			[ ! -e "./$f.git" ] || continue
			kib=$(du -sk "./$f" 2>/dev/null)
			kib=${kib%%[!0-9]*}
			if [ "${kib:-0}" -gt $((new / 256)) ]; then to=omitted; else to=dirs; fi ;;
		*) to=files ;;
		esac
		printf "%s\0" "$f" >>"$tmp/$to"
	done' "$tmp/untracked"
	each 'git --literal-pathspecs ls-files -z --others --exclude-standard -- "$@"' "$tmp/dirs" >>"$tmp/files"
	cat "$tmp/forced" >>"$tmp/files"
	each "$dotted" "$tmp/files" >"$tmp/new"
fi
git diff-files -z --name-only --no-renames --ignore-submodules=all --diff-filter=d >"$tmp/changed"
each "$dotted" "$tmp/changed" >"$tmp/old"

# sized BYTES FILE prints the names in a file that are files (or links) of at
# most so many bytes, and that can be read, and puts the others among those
# left out. A pipe or a socket is neither.
sized() {
	most=$1
	export most
	each 'find "$@" -prune \( -type l -o -type f ! -size +"$most"c \) -print0 2>/dev/null; :' "$2" >"$tmp/fit"
	each 'find "$@" -prune -type f -size +"$most"c -print0 2>/dev/null; :' "$2" >>"$tmp/omitted"
	each 'for f do
		if [ -h "$f" ] || [ -r "$f" ]; then printf "%s\0" "$f"; else printf "%s\0" "$f" >>"$tmp/omitted"; fi
	done' "$tmp/fit"
}
sized "$new" "$tmp/new" >"$tmp/taken"
sized "$old" "$tmp/old" >>"$tmp/taken"

git update-index -z --add --remove --replace --stdin <"$tmp/taken"
tree=$(git write-tree)
changes "$base" "$tree" >"$tmp/patch"
if [ $(wc -c <"$tmp/patch") -gt "$limit" ]; then
	emit large "$tree"
	exit 0
fi
cp "$tmp/patch" "$tmp/patch.out"
[ -s "$tmp/patch" ] || { emit exact "$tree"; exit 0; }
applied=
if applies "$tmp/patch" && [ "$applied" = "$tree" ]; then
	emit exact "$tree"
else
	[ -s "$tmp/words" ] || tail -c 500 "$tmp/err" >"$tmp/words"
	emit differs "$tree"
fi
