# Takes the state at the start, after tree.sh: the patch from the commit to it;
# the names of what git ignores; and of what was left out, each after its stamp
# and a tab. Set before: limit, the size of the patch in bytes.
words_most=262144 omitted_most=1000000
git ls-files -z --others --ignored --exclude-standard --directory >"$tmp/words"
each "$stamp
"'for f do
	f=${f#*	}
	printf "%s\t%s\0" "$(stamp "$f")" "${f#./}"
done' "$tmp/omitted" >"$tmp/stamped"
mv "$tmp/stamped" "$tmp/omitted"
changes "$base" "$tree" >"$tmp/patch"
state=exact
if [ $(wc -c <"$tmp/patch") -gt "$limit" ]; then
	state=large
else
	cp "$tmp/patch" "$tmp/patch.out"
	if [ -s "$tmp/patch" ] && [ "$(started "$tmp/patch")" != "$tree" ]; then
		echo "the patch of the state at the start gives other files" >&2
		exit 1
	fi
fi
emit "$state" "$tree"
