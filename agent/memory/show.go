package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Bounds of a listing.
const (
	// DefaultListed is how many notes are listed where nobody says how many.
	DefaultListed = 100
	// maxListing is how many bytes of texts a listing has.
	maxListing = 48 << 10
)

// List is a text of notes for a model: by category, each with its time. It has the
// newest that fit, at most limit, and says what it leaves out.
func List(all []Note, limit int) string {
	if len(all) == 0 {
		return "there are no notes\n"
	}
	shown, size := len(all), 0
	for i, n := range slices.Backward(all) {
		if size += len(n.Text); size > maxListing || len(all)-i > limit {
			break
		}
		shown = i
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, times in UTC", count(len(all)-shown, "note"))
	if shown > 0 {
		fmt.Fprintf(&b, "; %s left out, the oldest (--limit and --category choose)", count(shown, "note"))
	}
	b.WriteByte('\n')
	for _, group := range Grouped(all[shown:]) {
		fmt.Fprintf(&b, "\n%s\n", group[0].Category)
		for _, n := range group {
			fmt.Fprintf(&b, "  %d  %s  %s\n", n.ID, n.Time.UTC().Format("2006-01-02 15:04"), indented(harmless(n.Text)))
		}
	}
	return b.String()
}

// Grouped are notes by category, in the order of the words; in each the order
// stays.
func Grouped(all []Note) [][]Note {
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

// Of are the notes of a category, which may be written in any case; all of them
// for an empty one. A name that is none is an error that is ErrMistake.
func Of(all []Note, name string) ([]Note, error) {
	if name == "" {
		return all, nil
	}
	name, err := category(name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(n Note) bool { return n.Category != name }), nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// indented is a text whose later lines stand under a note, so that none looks
// like a heading.
func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n      ") }

// harmless is a text without signs that would steer a terminal, or show another
// text than the one that is there.
func harmless(s string) string {
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
