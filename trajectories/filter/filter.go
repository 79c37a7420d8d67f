// Package filter selects trajectories of a list by a few words:
//
//	status:limit verdict:unresolved cost>1 text:"no such file" django
//
// All conditions must hold. A word without a field is a part of the id.
package filter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories/timeline"
)

// Filter is what a list shows. The zero value shows all.
type Filter struct {
	id, status, verdict []string
	above, below        []float64
	// Text is what trajectories must have in them; empty where that does not matter.
	Text string
}

// Row is what is known of a trajectory without reading it.
type Row struct {
	ID      string
	Status  []string // words for how it ended, or how far it is
	Verdict string
	Cost    *model.Cost // nil where it is not known, which no bound holds for
}

// fields are those that Parse knows.
const fields = "status:WORD, verdict:WORD, cost>N, cost<N, text:WORDS"

// Parse reads conditions. Errors say what is valid.
func Parse(line string) (Filter, error) {
	var f Filter
	words, err := split(line)
	if err != nil {
		return f, err
	}
	for _, word := range words {
		at := strings.IndexAny(word, ":<>")
		if at < 0 {
			f.id = append(f.id, strings.ToLower(word))
			continue
		}
		field, value := strings.ToLower(word[:at+1]), word[at+1:]
		if value == "" {
			return f, fmt.Errorf("nothing follows %s (%s)", word, fields)
		}
		switch field {
		case "status:":
			f.status = append(f.status, strings.ToLower(value))
		case "verdict:":
			f.verdict = append(f.verdict, strings.ToLower(value))
		case "text:":
			if f.Text != "" {
				return f, fmt.Errorf(`text: may be given once; quote what has spaces: text:"no such file"`)
			}
			f.Text = value
		case "cost>", "cost<":
			n, err := strconv.ParseFloat(strings.TrimPrefix(value, "$"), 64)
			if err != nil || n != n {
				return f, fmt.Errorf("%s is followed by %.30q, which is no number", field, value)
			}
			if field == "cost>" {
				f.above = append(f.above, n)
			} else {
				f.below = append(f.below, n)
			}
		default:
			return f, fmt.Errorf("there is no filter %.30q (%s)", field, fields)
		}
	}
	return f, nil
}

// split takes a line apart at spaces that are not in quotes.
func split(line string) ([]string, error) {
	var words []string
	word, quote := "", rune(0)
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && unicode.IsSpace(r):
			if word != "" {
				words = append(words, word)
			}
			word = ""
		default:
			word += string(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	return words, nil
}

// Shows says whether a row meets all conditions but that on its text.
func (f Filter) Shows(r Row) bool {
	all := func(words []string, holds func(string) bool) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !holds(w) })
	}
	verdict := cmp.Or(strings.ToLower(r.Verdict), "none")
	bounded := r.Cost != nil && !slices.ContainsFunc(f.above, func(n float64) bool { return float64(*r.Cost) <= n }) &&
		!slices.ContainsFunc(f.below, func(n float64) bool { return float64(*r.Cost) >= n })
	return all(f.id, func(w string) bool { return strings.Contains(strings.ToLower(r.ID), w) }) &&
		all(f.status, func(w string) bool {
			return slices.ContainsFunc(r.Status, func(s string) bool { return strings.Contains(strings.ToLower(s), w) })
		}) &&
		all(f.verdict, func(w string) bool { return strings.HasPrefix(verdict, w) }) && // one is within another's name
		(bounded || len(f.above)+len(f.below) == 0)
}

// Has says whether a trajectory has the text in what is shown of it, or in its
// patch.
func (f Filter) Has(t *timeline.Timeline) bool {
	match := Matcher(f.Text)
	patch, _ := t.Patch()
	return match(patch) || slices.ContainsFunc(t.All(), func(s *timeline.Step) bool { return s.Contains(match) })
}

// Matcher finds a text within others: in any case, unless it has a capital letter.
func Matcher(text string) func(string) bool {
	if strings.ContainsFunc(text, unicode.IsUpper) {
		return func(s string) bool { return strings.Contains(s, text) }
	}
	return func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
}
