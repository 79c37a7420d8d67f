package report

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// Reason is what several instances failed with: errors that are alike but for
// names, numbers and paths.
type Reason struct {
	Count int `json:"count"`
	// Pattern is the error with what differs left out; Error is that of one
	// instance, Example, and Hint what mini said to do about it.
	Pattern string `json:"pattern"`
	Error   string `json:"error"`
	Example string `json:"example"`
	Hint    string `json:"hint,omitempty"`
}

// maxError bounds the error texts that are looked at, in bytes.
const maxError = 2000

// classOrder is that of the table: what counts, then what does not.
var classOrder = []trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider,
	trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
}

// tallyClasses groups rows by class.
type tallyClasses map[trajectories.Class]*Class

func (t tallyClasses) add(r Row) {
	c := t[r.Class]
	if c == nil {
		c = &Class{Class: r.Class}
		t[r.Class] = c
	}
	c.Count++
	if r.Class.Counts() {
		if r.PatchBytes > 0 {
			c.Patches.With++
		} else {
			c.Patches.Empty++
		}
		if r.Autosubmitted {
			c.Patches.Autosubmitted++
		}
	}
	i := slices.IndexFunc(c.Statuses, func(s Status) bool { return s.Status == r.Status })
	if i < 0 {
		i = len(c.Statuses)
		c.Statuses = append(c.Statuses, Status{Status: r.Status})
	}
	c.Statuses[i].add(r)
}

func (s *Status) add(r Row) {
	s.Count++
	if r.Error == "" {
		return
	}
	pattern := pattern(r.Error, r.ID)
	i := slices.IndexFunc(s.Reasons, func(o Reason) bool { return o.Pattern == pattern })
	if i < 0 {
		i = len(s.Reasons)
		s.Reasons = append(s.Reasons, Reason{Pattern: pattern, Error: bounded(r.Error, maxError), Example: r.ID, Hint: r.Hint})
	}
	s.Reasons[i].Count++
}

// sorted puts classes in the order of classOrder, and the rest most first.
func (t tallyClasses) sorted() []Class {
	list := []Class{}
	for _, c := range t {
		slices.SortStableFunc(c.Statuses, func(a, b Status) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status))
		})
		for _, s := range c.Statuses {
			slices.SortStableFunc(s.Reasons, func(a, b Reason) int { return cmp.Compare(b.Count, a.Count) })
		}
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Class) int {
		return cmp.Or(cmp.Compare(rankOf(a.Class), rankOf(b.Class)), cmp.Compare(a.Class, b.Class))
	})
	return list
}

func rankOf(c trajectories.Class) int {
	if i := slices.Index(classOrder, c); i >= 0 {
		return i
	}
	return len(classOrder)
}

// What differs between errors that are alike, the most particular first.
var differing = []struct {
	what *regexp.Regexp
	sign string
}{
	{regexp.MustCompile(`\bsha256:[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`), "<id>"},
	{regexp.MustCompile(`(^|[\s"'=(:])(~|\.{1,2})?(/[\w.@+~-]+){2,}/?`), "${1}<path>"},
	{regexp.MustCompile(`\b[0-9a-fA-F]{8,}\b`), "<id>"},
	{regexp.MustCompile(`\b([0-9]+(\.[0-9]+)?(h|ms|µs|us|ns|m|s))+\b`), "<time>"},
	{regexp.MustCompile(`[0-9]+([.,][0-9]+)*`), "<n>"},
}

// minName is the length from which on an id is looked for in its error: a
// shorter one may be a word of the sentence.
const minName = 4

// pattern is an error without what is only this instance's.
func pattern(text, id string) string {
	if len(id) < minName {
		id = ""
	}
	return Shape(text, id)
}

// Shape is the beginning of a text without the instance it is about, without
// numbers, and without the names of folders and containers: what texts of the
// same kind have in common.
func Shape(text, instance string) string {
	text = strings.Join(strings.Fields(bounded(text, maxError)), " ")
	if instance != "" {
		text = named(instance).ReplaceAllString(text, "<instance>")
	}
	for _, d := range differing {
		text = d.what.ReplaceAllString(text, d.sign)
	}
	return text
}

// named finds an instance where its name stands as a word.
func named(id string) *regexp.Regexp {
	lower := regexp.QuoteMeta(strings.ToLower(id))
	// As such, and within the names of images, which cannot have "__".
	name := strings.ReplaceAll(lower, "__", "(?:__|_1776_|_s_)")
	if wordly(id[0]) {
		name = `\b` + name
	}
	if wordly(id[len(id)-1]) {
		name += `\b`
	}
	return regexp.MustCompile("(?i)" + name)
}

// wordly says that an expression counts a byte among those of words.
func wordly(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// bounded is the beginning of s, in whole characters.
func bounded(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
