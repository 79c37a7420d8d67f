package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/minibench/mini/internal/text"
)

// Bounds of a listing.
const (
	// DefaultListLimit is the default number of listed notes.
	DefaultListLimit = 100
	// maxListing bounds the texts and categories in a listing, in bytes.
	maxListing = 48 << 10
)

// FormatNotes returns a text for the model: notes by category, each with its
// time. It contains the newest notes that fit, at most limit, and the number of
// omitted ones.
func FormatNotes(all []Note, limit int) string {
	if len(all) == 0 {
		return "there are no notes\n"
	}
	first, size := len(all), 0
	for i, n := range slices.Backward(all) {
		if size += len(n.Text) + len(n.Category); size > maxListing || len(all)-i > limit {
			break
		}
		first = i
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, times in UTC", text.Count(len(all)-first, "note"))
	if first > 0 {
		fmt.Fprintf(&b, "; %s left out, the oldest (--limit and --category choose)", text.Count(first, "note"))
	}
	b.WriteByte('\n')
	for _, group := range GroupByCategory(all[first:]) {
		fmt.Fprintf(&b, "\n%s\n", oneLine(group[0].Category))
		for _, n := range group {
			fmt.Fprintf(&b, "  %d  %s  %s\n", n.ID, n.Time.UTC().Format("2006-01-02 15:04"), indentLines(sanitize(n.Text)))
		}
	}
	return b.String()
}

// GroupByCategory groups notes by category, sorted by name. The order within a
// category does not change.
func GroupByCategory(all []Note) [][]Note {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Note) int { return cmp.Compare(a.Category, b.Category) })
	var groups [][]Note
	for i, n := range sorted {
		if i == 0 || n.Category != sorted[i-1].Category {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], n)
	}
	return groups
}

// FilterByCategory returns the notes of a category, ignoring case; all notes if
// name is empty. The error for an invalid name is an ErrInvalid.
func FilterByCategory(all []Note, name string) ([]Note, error) {
	if name == "" {
		return all, nil
	}
	name, err := normalizeCategory(name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(n Note) bool { return n.Category != name }), nil
}

// indentLines indents the lines after the first, so that none looks like a
// heading.
func indentLines(s string) string { return strings.ReplaceAll(s, "\n", "\n      ") }

// sanitize replaces characters that control a terminal or change the direction
// of text.
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d': // the last two join letters
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
