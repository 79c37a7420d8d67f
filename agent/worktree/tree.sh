# Sets tree to the tree of the current files: what git add -A would add,
# without junk, files that are too large and files that git rejects. It writes
# each name that it leaves out to $tmp/omitted, after the reason and a tab.
# Variables: new, the maximum size of a new file and a quarter of that of a new
# folder; old, the maximum size of a file of the base; both in bytes. The
# functions ignored (prints names) and left_out (calls left) must be defined.
: >"$tmp/omitted"
export new tmp base

# Reuse the agent's index, so that git does not read every file again. A shared
# or broken index is not reused. The copy keeps its time, because git uses it
# to detect changes within the second in which it was written. Files that the
# agent added explicitly are included even if ignored, except junk.
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
	# Clear bits that hide changes. A sparse checkout has skip-worktree bits
	# legitimately.
	git ls-files -z | git update-index -z --no-assume-unchanged --stdin
	[ "$(git config --bool core.sparseCheckout)" = true ] ||
		git ls-files -z | git update-index -z --no-skip-worktree --stdin
fi

# sh "$tmp/stamp" NAME prints a stamp that changes with a file or with the
# content of a folder. In a folder, junk and git directories are ignored.
cat >"$tmp/stamp" <<'END'
case $1 in
*/)
	cd "./$1" 2>/dev/null || exit 0
	list=$(GIT_WORK_TREE="$PWD" GIT_INDEX_FILE="$tmp/none" git ls-files -z --others -X "$tmp/exclude" 2>/dev/null | tr '\000' '\n')
	{
		printf '%s\n' "$list"
		printf '%s\n' "$list" | grep -v '/$' | tr '\n' '\000' |
			xargs -0 sh -c 'stat -c "%n %f %s %y" -- "$@" 2>/dev/null || ls -ldn -- "$@" 2>/dev/null' sh
		# Git lists a repository in the folder only by its name.
		printf '%s\n' "$list" | grep '/$' | while IFS= read -r inner; do sh "$tmp/stamp" "$inner"; done
	} | cksum
	;;
*) stat -c "%s %y" "./$1" 2>/dev/null || ls -ldn "./$1" 2>/dev/null | cksum ;;
esac
END
# left NAME STAMP handles a file that existed at the start and is not in the
# base: it is listed if it changed, and never included.
left() {
	git --literal-pathspecs ls-files -z -- "$1" | git update-index -z --skip-worktree --stdin
	[ "$(sh "$tmp/stamp" "$1")" = "$2" ] || printf 'changed, and not in the state at the start, where it was left out\t%s\0' "$1" >>"$tmp/omitted"
}
left_out

# Compare the content of files whose times changed.
git update-index -q --ignore-submodules --refresh >/dev/null || :
# Remove deleted files first: a file that became a folder hides the folder's
# content.
git diff-files -z --name-only --no-renames --ignore-submodules=all --diff-filter=D | git update-index -z --force-remove --stdin

# each COMMAND FILE runs a command on the names in a file, many at once. In the
# command, omit REASON NAME leaves a name out.
each() {
	[ ! -s "$2" ] || xargs -0 sh -c 'omit() { printf "%s\t%s\0" "$1" "$2" >>"$tmp/omitted"; }
'"$1" sh <"$2"
}
dotted='for f do printf "./%s\0" "$f"; done'

# New files, whole folders first. A patch cannot contain nested repositories.
git ls-files -z --others --exclude-standard --directory --no-empty-directory >"$tmp/untracked" 2>"$tmp/unread"
: >"$tmp/files"; : >"$tmp/dirs"; : >"$tmp/fresh"; : >"$tmp/new"
each 'for f do
	kib=0
	[ "$f" = "${f%/}" ] || kib=$(du -sk "./$f" 2>/dev/null)
	kib=${kib%%[!0-9]*}
	if [ "$new" -eq 0 ]; then
		omit "new, while the rest alone fits into a patch" "$f"
	elif [ "${kib:-0}" -gt $((new / 256)) ]; then
		omit "larger than $((new * 4)) bytes" "$f"
	else
		case $f in */) to=dirs ;; *) to=files ;; esac
		printf "%s\0" "$f" >>"$tmp/$to"
	fi
done' "$tmp/untracked"
each 'git --literal-pathspecs ls-files -z --others --exclude-standard -- "$@" 2>>"$tmp/unread"' "$tmp/dirs" >>"$tmp/files"
[ "$new" -eq 0 ] || cat "$tmp/forced" >>"$tmp/files"
each 'for f do
	case $f in
	*/) omit "a git repository of its own" "$f" ;;
	*) printf "%s\0" "$f" >>"$tmp/fresh" ;;
	esac
done' "$tmp/files"
each "$dotted" "$tmp/fresh" >"$tmp/new"
sed -n "s/^warning: could not open directory '\(.*\)': .*/cannot be read	\1/p" "$tmp/unread" | sort -u | tr '\n' '\000' >>"$tmp/omitted"
git diff-files -z --name-only --no-renames --ignore-submodules=all --diff-filter=d >"$tmp/changed"
each "$dotted" "$tmp/changed" >"$tmp/old"

# sized BYTES FILE prints the names in FILE that are readable files or links of
# at most that size. Like git, it ignores new pipes and sockets.
sized() {
	most=$1
	export most
	each 'find "$@" -prune \( -type l -o -type f ! -size +"$most"c \) -print0 2>/dev/null; :' "$2" >"$tmp/fit"
	each 'find "$@" -prune -type f -size +"$most"c -print0 2>/dev/null; :' "$2" >"$tmp/large"
	each 'find "$@" -prune ! -type f ! -type l -print0 2>/dev/null; :' "$2" >"$tmp/special"
	each 'for f do omit "larger than $most bytes" "$f"; done' "$tmp/large"
	each 'for f do omit "neither a file nor a link" "$f"; done' "$tmp/special"
	each 'for f do
		if [ -h "$f" ] || [ -r "$f" ]; then printf "%s\0" "$f"; else omit "cannot be read" "$f"; fi
	done' "$tmp/fit"
}
sized "$new" "$tmp/new" >"$tmp/taken"
sized "$old" "$tmp/old" >>"$tmp/taken"

# One file that git rejects makes the whole call fail, and for a rejected name
# git only prints a message. So retry with fewer files at once until only the
# rejected one is left. A full disk is not a rejection.
cat >"$tmp/add" <<'END'
printf '%s\0' "$@" | git update-index -z --add --remove --replace --stdin >/dev/null 2>"$tmp/refusal"
status=$?
if grep -q -e 'No space left on device' -e 'uota exceeded' "$tmp/refusal"; then
	cat "$tmp/refusal" >&2
	exit 255
fi
[ $status -ne 0 ] || grep -q '^Ignoring path' "$tmp/refusal" || exit 0
if [ $# -gt 1 ]; then
	printf '%s\0' "$@" | xargs -0 -n $((($# + 7) / 8)) sh "$tmp/add" || exit 255
else
	reason=$(sed -n -e '/^warning: /d' -e '/^hint: /d' -e 's/^[a-z]*: //' -e 'p;q' "$tmp/refusal" | tr '\t' ' ')
	printf '%s\t%s\0' "git does not take it: ${reason:-exit code $status}" "$1" >>"$tmp/omitted"
fi
END
[ ! -s "$tmp/taken" ] || xargs -0 -n 4096 sh "$tmp/add" <"$tmp/taken"

# Files that git ignored at the start exist wherever the patch is applied and
# are not new. If a folder had too many of them to list, all files in it count
# as existing, except those that the agent added explicitly. Names are compared
# as lines; the list has no names with newlines.
added='git --literal-pathspecs diff-index --cached -z --name-only --no-renames --ignore-submodules=all --diff-filter=A "$base" -- "$@"'
lines() { tr '\n\000' '\001\n'; }
# A busybox grep with an empty pattern list matches everything, so each list
# has one pattern.
{ echo /; ignored | grep -v '/$' || :; } >"$tmp/ignored"
ignored | grep '/$' | tr '\n' '\000' >"$tmp/folders"
{ echo /; lines <"$tmp/forced"; } >"$tmp/named"
sh -c "$added" sh | lines | grep -Fxf "$tmp/ignored" | tr '\n' '\000' >"$tmp/known"
each "$added" "$tmp/folders" | lines | grep -vFxf "$tmp/named" | tr '\n\001' '\000\n' >"$tmp/within"
each 'for f do omit "there at the start, where git ignored it" "$f"; done' "$tmp/known"
each 'for f do omit "in a folder that git ignored at the start, with too many files to tell which are new" "$f"; done' "$tmp/within"
cat "$tmp/known" "$tmp/within" | git update-index -z --force-remove --stdin
tree=$(git write-tree)
