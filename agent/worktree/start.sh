# Captures the state at the start, after tree.sh: the patch from the commit to
# it, the names of ignored files, and the names of files left out, each after
# its stamp and a tab. Variable: limit, the maximum size of the patch in bytes.
words_most=262144 omitted_most=1000000
git ls-files -z --others --ignored --exclude-standard --directory >"$tmp/words"
each 'for f do
	case $f in */) to=folders ;; *) to=single ;; esac
	printf "%s\0" "$f" >>"$tmp/$to"
done' "$tmp/words"
touch "$tmp/folders" "$tmp/single"
# files prints the names of the files in folders, up to one byte more than
# allowed, so that find ends early in a large folder such as node_modules.
export bytes_left
bytes_left=$((words_most - $(wc -c <"$tmp/words")))
files='find "$@" -name .git -prune -o ! -type d -print0 2>/dev/null | head -c $((bytes_left + 1))'
[ $bytes_left -gt 0 ] || bytes_left=0
each "$dotted" "$tmp/folders" >"$tmp/dotted"
each "$files" "$tmp/dotted" >"$tmp/listed"
if [ $(wc -c <"$tmp/listed") -gt $bytes_left ]; then
	# List the files of the folders that fit, and only the names of the others.
	each 'for f do
		set -- "$f"
		'"$files"' >"$tmp/one"
		size=$(wc -c <"$tmp/one")
		if [ $size -le $bytes_left ]; then
			cat "$tmp/one"
			bytes_left=$((bytes_left - size))
		else
			printf "%s\0" "$f"
		fi
	done' "$tmp/dotted" >"$tmp/listed"
fi
cp "$tmp/single" "$tmp/words"
each 'for f do printf "%s\0" "${f#./}"; done' "$tmp/listed" >>"$tmp/words"
each 'for f do
	f=${f#*	}
	printf "%s\t%s\0" "$(sh "$tmp/stamp" "$f")" "${f#./}"
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
