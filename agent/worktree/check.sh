# Holds a patch of the agent's against the base. Set before: the function
# submission, which prints it with an end to its last line; size, its own size
# in bytes; end, the line ends to try it with; doubtful, whether they are to be
# tried even if it applies as it is; and binary, whether it is to be made anew,
# as one that holds other text than UTF-8 in binary form.
submission >"$tmp/submission"
dd if="$tmp/submission" of="$tmp/patch" bs="$size" count=1 2>/dev/null
check() {
	trouble=0
	applies "$1" || trouble=$?
	[ $trouble -ne 2 ]
}
# rebase is for what git diff prints, which is against the commit, and so has
# what was changed at the start: each file that it is about takes the place of
# the one in the base, as it makes it of the commit.
rebase() {
	at_start=$base base=$commit
	check "$tmp/patch"
	[ $trouble -eq 0 ] || check "$tmp/whole"
	base=$at_start
	[ $trouble -eq 0 ] || return 1
	(
		export GIT_INDEX_FILE="$tmp/rebased.index"
		git read-tree "$base"
		git diff-tree -r --no-renames "$commit" "$applied" |
			sed 's/^:[0-7]* \([0-7]*\) [0-9a-f]* \([0-9a-f]*\) [A-Z]*	/\1 \2	/' | git update-index --replace --index-info
		git write-tree >"$tmp/rebased"
	)
	applied=$(cat "$tmp/rebased")
}
check "$tmp/patch"
state=applies
if [ $trouble -ne 0 ] || $doubtful; then
	[ $trouble -ne 0 ] || bare=$applied
	refused=$trouble
	[ ! -f "$tmp/words" ] || cp "$tmp/words" "$tmp/words.bare"
	{ cat "$tmp/patch"; printf "$end"; } >"$tmp/whole"
	check "$tmp/whole"
	if [ $trouble -eq 0 ] && { [ $refused -ne 0 ] || [ "$applied" != "$bare" ]; }; then
		state=mended
	elif [ $refused -eq 0 ]; then
		applied=$bare
	elif [ "$base" != "$commit" ] && rebase; then
		state=rebased
	else
		cp "$tmp/words.bare" "$tmp/words"
		emit refused none
		exit 0
	fi
fi
if $binary || [ $state = rebased ]; then changes "$base" "$applied" >"$tmp/patch.out"; fi
rm -f "$tmp/words"
emit "$state" "$applied"
