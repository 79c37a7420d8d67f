// Package query filters lists of trajectories by queries such as
//
//	status:limit verdict:unresolved cost>1 text:"no such file" django
//
// A trajectory matches if it meets all conditions. A word without a field must be a
// part of its ID.
package query

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

// Filter is a parsed query. The zero value matches everything.
type Filter struct {
	id, status, verdict []string
	labels              []string
	moreThan, lessThan  []float64
	// Text is the text that a trajectory must contain, see MatchesText.
	Text string
}

// Row is the data about a trajectory that can be matched without reading it.
type Row struct {
	ID      string
	Status  []string // words about the outcome or the progress; one must contain the query's word
	Verdict string
	Labels  []string
	Cost    *model.Cost // nil if unknown; an unknown cost meets no cost condition
}

// validConditions lists the conditions that Parse accepts, for error messages.
const validConditions = "status:WORD, verdict:WORD, label:WORD, cost>N, cost<N, text:WORDS"

// Parse parses a query. Its errors about an unknown field or a missing value list the valid
// conditions.
func Parse(line string) (Filter, error) {
	var f Filter
	words, err := split(line)
	if err != nil {
		return f, err
	}
	for _, word := range words {
		separator := strings.IndexAny(word, ":<>")
		if separator < 0 {
			f.id = append(f.id, strings.ToLower(word))
			continue
		}
		field, value := strings.ToLower(word[:separator+1]), word[separator+1:]
		if value == "" {
			return f, fmt.Errorf("missing value after %s (%s)", word, validConditions)
		}
		switch field {
		case "status:":
			f.status = append(f.status, strings.ToLower(value))
		case "verdict:":
			f.verdict = append(f.verdict, strings.ToLower(value))
		case "label:":
			f.labels = append(f.labels, strings.ToLower(value))
		case "text:":
			if f.Text != "" {
				return f, fmt.Errorf(`text: can be used only once; quote text with spaces:  text:"no such file"`)
			}
			f.Text = value
		case "cost>", "cost<":
			n, err := strconv.ParseFloat(strings.TrimPrefix(value, "$"), 64)
			if err != nil || n != n {
				return f, fmt.Errorf("%s must be followed by a number, got %.30q", field, value)
			}
			if field == "cost>" {
				f.moreThan = append(f.moreThan, n)
			} else {
				f.lessThan = append(f.lessThan, n)
			}
		default:
			return f, fmt.Errorf("unknown filter %.30q (%s)", field, validConditions)
		}
	}
	return f, nil
}

// split splits a line at spaces outside of quotes, and removes the quotes.
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
		return nil, fmt.Errorf("missing closing quote %c", quote)
	}
	return words, nil
}

// Matches reports whether a row meets all conditions except Text. Case is ignored.
func (f Filter) Matches(r Row) bool {
	allMatch := func(words []string, matches func(string) bool) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !matches(w) })
	}
	verdict := cmp.Or(strings.ToLower(r.Verdict), "none")
	costMatches := r.Cost != nil && !slices.ContainsFunc(f.moreThan, func(n float64) bool { return float64(*r.Cost) <= n }) &&
		!slices.ContainsFunc(f.lessThan, func(n float64) bool { return float64(*r.Cost) >= n })
	return allMatch(f.id, func(w string) bool { return strings.Contains(strings.ToLower(r.ID), w) }) &&
		allMatch(f.status, func(w string) bool {
			return slices.ContainsFunc(r.Status, func(s string) bool { return strings.Contains(strings.ToLower(s), w) })
		}) &&
		allMatch(f.labels, func(w string) bool { return slices.Contains(r.Labels, w) }) &&
		allMatch(f.verdict, func(w string) bool { return strings.HasPrefix(verdict, w) }) && // a prefix, since "unresolved" contains "resolved"
		(costMatches || len(f.moreThan)+len(f.lessThan) == 0)
}

// MatchesText reports whether a step or the patch of a trajectory contains Text.
func (f Filter) MatchesText(t *timeline.Timeline) bool {
	match := TextMatcher(f.Text)
	patch, _ := t.Patch()
	return match(patch) || slices.ContainsFunc(t.AllSteps(), func(s *timeline.Step) bool { return s.Contains(match) })
}

// TextMatcher returns a function that reports whether its argument contains text. The
// function ignores case unless text contains an upper-case letter.
func TextMatcher(text string) func(string) bool {
	if strings.ContainsFunc(text, unicode.IsUpper) {
		return func(s string) bool { return strings.Contains(s, text) }
	}
	return func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
}
