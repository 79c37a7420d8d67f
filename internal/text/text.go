// Package text has small functions on texts that are shown: on one line, cut to
// a bound, counted; and JSON as files of ours have it.
package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// OneLine puts single spaces between the words of s and removes its line ends.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// FirstLine returns s up to its first line end.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// Clip returns s if it has at most limit bytes; otherwise its beginning of at most
// limit bytes, with "..." after it. It cuts between characters.
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

// ClipRunes is Clip with a limit in characters.
func ClipRunes(s string, limit int) string {
	n := 0
	for at := range s {
		if n == limit {
			return s[:at] + "..."
		}
		n++
	}
	return s
}

// Count returns a number and its noun: "1 file", "2 files", "3 entries".
func Count(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, Plural(n, noun))
}

// Plural returns the noun as it stands after the number n.
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

// JSON encodes v as an indented document that ends with a line end. Characters of
// HTML are not escaped.
func JSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return out.Bytes(), err
}
