// Package text formats text for display: it joins, shortens and counts. It also
// encodes JSON in the format of mini's files.
package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// OneLine removes white space at both ends of s and replaces each other run of it,
// including line ends, by one space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// FirstLine returns the first line of s.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// Clip returns s if it has at most limit bytes. Otherwise it returns the first limit
// bytes, or fewer to avoid cutting a character, followed by "...".
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := max(limit, 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}

// ClipRunes is like Clip with a limit in characters.
func ClipRunes(s string, limit int) string {
	n := 0
	for i := range s {
		if n == limit {
			return s[:i] + "..."
		}
		n++
	}
	return s
}

// Count returns a number and its noun: "1 file", "2 files", "3 entries".
func Count(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, Plural(n, noun))
}

// Plural returns the form of a noun that follows the number n.
func Plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	if strings.HasSuffix(noun, "ch") {
		return noun + "es"
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(noun, "ey") && !strings.HasSuffix(noun, "ay") {
		return stem + "ies"
	}
	return noun + "s"
}

// Verb returns the form of a verb whose subject is n things.
func Verb(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// JSON encodes v as indented JSON with a final line end, without escaping of HTML
// characters.
func JSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return out.Bytes(), err
}

// List joins names with commas. It replaces the names after the first three by
// their number: "a, b, c and 2 more".
func List(names []string) string {
	const limit = 3
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// CSVField returns s as the content of a field of a CSV file. An apostrophe precedes
// text that a spreadsheet would take for a formula.
func CSVField(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
