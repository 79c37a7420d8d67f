package files

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// absent says that the old text is not there, and what comes near to it.
func (c change) absent(text []byte) error {
	return fmt.Errorf("%sthe old text is not there%s", c.which(), c.hint(text))
}

// maxHinted is how large a file may be that is searched again, in bytes.
const maxHinted = 4 << 20

// hint looks for the usual reasons, the likeliest first; empty where it finds
// none.
func (c change) hint(text []byte) string {
	old := splitLines(c.old)
	for len(old) > 1 && len(squeezed(old[len(old)-1])) == 0 {
		old = old[:len(old)-1]
	}
	for len(old) > 1 && len(squeezed(old[0])) == 0 {
		old = old[1:]
	}
	if len(squeezed(old[0])) == 0 || len(text) > maxHinted {
		return ""
	}
	lines := splitLines(text)
	if numbered(old) {
		return "; it has numbers of lines in it, which read shows and the file has not"
	}
	if at, ok := similar(lines, old, squeezed); ok {
		return fmt.Sprintf("; line%s differ%s from it in white space only:\n%s", span(at, len(old)), ending(len(old)), excerpt(lines, at, len(old)))
	}
	if at, ok := similar(lines, old, lowered); ok {
		return fmt.Sprintf("; line%s differ%s from it in upper and lower case:\n%s", span(at, len(old)), ending(len(old)), excerpt(lines, at, len(old)))
	}
	if len(old) > 1 {
		if at, ok := similar(lines, old[:1], squeezed); ok {
			n := 1
			for n < len(old) && at+n < len(lines) && bytes.Equal(squeezed(old[n]), squeezed(lines[at+n])) {
				n++
			}
			if at+n >= len(lines) {
				return fmt.Sprintf("; it begins as line %d does, but the file ends before it does", at+1)
			}
			return fmt.Sprintf("; it begins as line %d does, but line %d is:\n%s", at+1, at+n+1, excerpt(lines, at+n, 1))
		}
	}
	return ""
}

// similar is the first line, from 0, at which all of old stands, as seen by a
// look. A single line may be a part of one.
func similar(lines, old [][]byte, look func([]byte) []byte) (at int, ok bool) {
	lines, old = seen(lines, look), seen(old, look)
	for i := 0; i+len(old) <= len(lines); i++ {
		if slices.EqualFunc(lines[i:i+len(old)], old, bytes.Equal) || len(old) == 1 && bytes.Contains(lines[i], old[0]) {
			return i, true
		}
	}
	return 0, false
}

func seen(lines [][]byte, look func([]byte) []byte) [][]byte {
	all := make([][]byte, len(lines))
	for i, l := range lines {
		all[i] = look(l)
	}
	return all
}

// splitLines are the lines of a text without their ends.
func splitLines(text []byte) [][]byte {
	lines := bytes.Split(text, []byte("\n"))
	if len(lines) > 1 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// squeezed is a line without its white space.
func squeezed(line []byte) []byte { return bytes.Join(bytes.Fields(line), nil) }

func lowered(line []byte) []byte { return bytes.ToLower(squeezed(line)) }

// numbered says that every line begins as read prints it.
func numbered(lines [][]byte) bool {
	for _, l := range lines {
		number, _, ok := bytes.Cut(bytes.TrimLeft(l, " "), []byte("\t"))
		if !ok || len(number) == 0 || len(bytes.Trim(number, "0123456789")) > 0 {
			return false
		}
	}
	return true
}

func span(first, n int) string {
	if n == 1 {
		return fmt.Sprintf(" %d", first+1)
	}
	return fmt.Sprintf("s %d to %d", first+1, first+n)
}

func ending(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// excerpt shows some lines as read does.
func excerpt(lines [][]byte, first, n int) string {
	const most, longest = 10, 200
	var b strings.Builder
	for i := first; i < first+n && i < first+most; i++ {
		line := lines[i]
		if len(line) > longest {
			line = append(bytes.ToValidUTF8(line[:longest:longest], nil), "..."...)
		}
		_, _ = fmt.Fprintf(&b, "%d\t%s\n", i+1, line)
	}
	if n > most {
		b.WriteString("...\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
