# Checks a patch of the agent against the base. Variables: size, the size of
# the patch in bytes; end, the newlines to try at its end; doubtful, whether to
# try them even if the patch applies without them; binary, whether to
# regenerate the patch with text that is not UTF-8 as binary. The function
# submission prints the patch with a newline at its end.
submission >"$tmp/submission"
dd if="$tmp/submission" of="$tmp/patch" bs="$size" count=1 2>/dev/null
check() {
	trouble=0
	applies "$1" || trouble=$?
	[ $trouble -ne 2 ]
}
# rebase handles a patch of git diff, which is against the commit and therefore
# includes the changes from before the start. Each file of the patch replaces
# that of the base, with the content that the patch makes of the commit.
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
