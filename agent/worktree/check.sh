# Holds a patch of the agent's against the base. Set before: ended, whether its
# last line has an end; binary, whether it is to be made anew, as one that
# holds other text than UTF-8 in binary form; and the function submission,
# which prints it, with an end to its last line.
submission >"$tmp/patch"
mended=false
$ended || {
	# As it came.
	size=$(($(wc -c <"$tmp/patch") - 1))
	dd if="$tmp/patch" of="$tmp/bare" bs="$size" count=1 2>/dev/null
}
check() {
	trouble=0
	applies "$1" || trouble=$?
	[ $trouble -ne 2 ]
}
if $ended; then
	check "$tmp/patch"
else
	check "$tmp/bare"
	if [ $trouble -eq 1 ]; then
		mended=true
		check "$tmp/patch"
	fi
fi
if [ $trouble -ne 0 ]; then
	emit refused none
	exit 0
fi
if $binary; then changes "$base" "$applied" >"$tmp/patch.out"; fi
rm -f "$tmp/words"
if $mended; then emit mended "$applied"; else emit applies "$applied"; fi
