package filetools

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// notFoundError returns an error for an old text that is not in the file, with a hint
// to similar text.
func (c change) notFoundError(text []byte) error {
	return fmt.Errorf("%sthe old text is not there%s", c.errorPrefix(), c.hint(text))
}

// maxHintSize is the maximum size of a file to search for similar text, in bytes.
const maxHintSize = 4 << 20

// hint returns the end of the error message: the likeliest reason why the old text does
// not match; "" if it finds none.
func (c change) hint(text []byte) string {
	old := splitLines(c.old)
	for len(old) > 1 && len(withoutSpace(old[len(old)-1])) == 0 {
		old = old[:len(old)-1]
	}
	for len(old) > 1 && len(withoutSpace(old[0])) == 0 {
		old = old[1:]
	}
	if len(withoutSpace(old[0])) == 0 || len(text) > maxHintSize {
		return ""
	}
	lines := splitLines(text)
	if hasLineNumbers(old) {
		return "; it has numbers of lines in it, which read shows and the file has not"
	}
	if at, ok := findNormalized(lines, old, withoutSpace); ok {
		return fmt.Sprintf("; line%s differ%s from it in white space only:\n%s", span(at, len(old)), verbEnding(len(old)), excerpt(lines, at, len(old)))
	}
	if at, ok := findNormalized(lines, old, lowerWithoutSpace); ok {
		return fmt.Sprintf("; line%s differ%s from it in upper and lower case:\n%s", span(at, len(old)), verbEnding(len(old)), excerpt(lines, at, len(old)))
	}
	if len(old) > 1 {
		if at, ok := findNormalized(lines, old[:1], withoutSpace); ok {
			n := 1
			for n < len(old) && at+n < len(lines) && bytes.Equal(withoutSpace(old[n]), withoutSpace(lines[at+n])) {
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

// findNormalized returns the index of the first line at which all lines of old match
// after normalization. A single line may match part of a line.
func findNormalized(lines, old [][]byte, normalize func([]byte) []byte) (at int, ok bool) {
	lines, old = normalizeAll(lines, normalize), normalizeAll(old, normalize)
	for i := 0; i+len(old) <= len(lines); i++ {
		if slices.EqualFunc(lines[i:i+len(old)], old, bytes.Equal) || len(old) == 1 && bytes.Contains(lines[i], old[0]) {
			return i, true
		}
	}
	return 0, false
}

func normalizeAll(lines [][]byte, normalize func([]byte) []byte) [][]byte {
	all := make([][]byte, len(lines))
	for i, l := range lines {
		all[i] = normalize(l)
	}
	return all
}

// splitLines returns the lines of a text without line ends.
func splitLines(text []byte) [][]byte {
	lines := bytes.Split(text, []byte("\n"))
	if len(lines) > 1 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// withoutSpace removes all white space from a line.
func withoutSpace(line []byte) []byte { return bytes.Join(bytes.Fields(line), nil) }

func lowerWithoutSpace(line []byte) []byte { return bytes.ToLower(withoutSpace(line)) }

// hasLineNumbers reports whether every line starts with a line number as printed by
// read.
func hasLineNumbers(lines [][]byte) bool {
	for _, l := range lines {
		number, _, ok := bytes.Cut(bytes.TrimLeft(l, " "), []byte("\t"))
		if !ok || len(number) == 0 || len(bytes.Trim(number, "0123456789")) > 0 {
			return false
		}
	}
	return true
}

// span formats the numbers of n lines; first is the index of the first one.
func span(first, n int) string {
	if n == 1 {
		return fmt.Sprintf(" %d", first+1)
	}
	return fmt.Sprintf("s %d to %d", first+1, first+n)
}

func verbEnding(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// excerpt formats n lines with their numbers, at most 10 lines and 200 bytes of each.
func excerpt(lines [][]byte, first, n int) string {
	const maxLines, maxLength = 10, 200
	var b strings.Builder
	for i := first; i < first+n && i < first+maxLines; i++ {
		line := lines[i]
		if len(line) > maxLength {
			line = append(bytes.ToValidUTF8(line[:maxLength:maxLength], nil), "..."...)
		}
		_, _ = fmt.Fprintf(&b, "%d\t%s\n", i+1, line)
	}
	if n > maxLines {
		b.WriteString("...\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
