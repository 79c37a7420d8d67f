# Takes the patch of everything in the working tree since the start, after
# tree.sh. Variable: limit, the maximum size of the patch in bytes.
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
