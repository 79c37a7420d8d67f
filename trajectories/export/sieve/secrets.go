package sieve

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories"
)

// Secrets says what becomes of attempts in which secrets were found. Whatever
// it is, no secret leaves.
type Secrets string

// What becomes of secrets.
const (
	Redact Secrets = "redact" // "[redacted]" stands in their place
	Drop   Secrets = "drop"   // the attempt is left out
	Refuse Secrets = "refuse" // nothing is exported
)

func secretModes() []string { return []string{string(Redact), string(Drop), string(Refuse)} }

// Known is a value that is a secret, and what it is called, as the name of the
// variable it is from. The value is in no report.
type Known struct{ Name, Value string }

// How long a value has to be, in bytes, to be looked for: shorter ones ("none",
// "dummy", "postgres") would be found in texts that have nothing to do with it.
const (
	leastKnown   = 8
	leastLetters = 16 // of one that has only letters
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// scanner finds secrets in one pass. Every rule has an anchor, bytes that stand
// in all it matches. By the two bytes at the end of a window of three a table
// says how far to go on, two in most places, or which rules may be there.
type scanner struct {
	table  [1 << 16]uint8 // below listed: how far; else listed + an index of lists
	lists  []list
	passed []string // names of values that are not looked for
}

// list are the rules whose anchors have the same second and third byte, and
// what the first one may be.
type list struct {
	first [256]bool
	rules []rule
}

// window is the length of what is looked at in every place, and the least that
// an anchor has.
const (
	window = 3
	listed = window
)

// rule is one kind of secret.
type rule struct {
	kind string
	// anchor is what the scan looks for, before bytes after the beginning of
	// the secret.
	anchor string
	before int
	// form is what it looks like from its beginning; nil where the anchor is
	// all of it, and known.
	form *regexp.Regexp
	// real says of what has the form whether it is a secret. It is nil for
	// private keys, of which the form is the first line only.
	real func(match string) bool
}

func newScanner(known []Known) (*scanner, error) {
	rules, err := shapes()
	if err != nil {
		return nil, err
	}
	s := &scanner{}
	var values []rule
	for _, k := range known {
		value := strings.TrimSpace(k.Value)
		if ordinary(value) {
			if value != "" {
				s.passed = append(s.passed, k.Name)
			}
			continue
		}
		for _, form := range formsOf(value) {
			values = append(values, rule{kind: "value of " + k.Name, anchor: form})
		}
	}
	// A value that begins like another one comes after it, and all of them
	// before shapes: what is known is named.
	slices.SortStableFunc(values, func(a, b rule) int { return len(b.anchor) - len(a.anchor) })
	slices.Sort(s.passed)
	return s, s.index(append(values, rules...))
}

// ordinary says that a value may stand in any text.
func ordinary(value string) bool {
	if len(value) >= leastLetters {
		return false
	}
	return len(value) < leastKnown || strings.IndexFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// formsOf are the ways in which a value may be written: as it is, in JSON, in
// JSON within JSON as the arguments of calls stand in an answer, and in a URL.
func formsOf(value string) []string {
	forms := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	for within := []string{value}; len(forms) < 3+2+4; {
		var quoted []string
		for _, text := range within {
			quoted = append(quoted, inJSON(text, json.Marshal), inJSON(text, trajectories.Encode)) // one escapes < and &
		}
		forms, within = append(forms, quoted...), quoted
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// inJSON is a text as JSON has it between its quotes.
func inJSON(text string, encode func(any) ([]byte, error)) string {
	quoted, err := encode(text)
	if err != nil || len(quoted) < 2 {
		return text
	}
	return string(quoted[1 : len(quoted)-1])
}

// index fills the table.
func (s *scanner) index(rules []rule) error {
	for i := range s.table {
		s.table[i] = window - 1
	}
	for _, r := range rules {
		s.table[block(r.anchor, 0)] = 1
	}
	for _, r := range rules {
		at := &s.table[block(r.anchor, 1)]
		if *at < listed {
			if listed+len(s.lists) > 255 { // hundreds of keys in the environment
				return fmt.Errorf("there are too many different keys in the environment to look for: over %d", len(s.lists))
			}
			*at = uint8(listed + len(s.lists))
			s.lists = append(s.lists, list{})
		}
		l := &s.lists[*at-listed]
		l.first[r.anchor[0]] = true
		l.rules = append(l.rules, r)
	}
	return nil
}

func block[T string | []byte](text T, at int) int { return int(text[at])<<8 | int(text[at+1]) }

// secret is one that was found: what, and where.
type secret struct {
	kind     string
	from, to int
	known    bool
}

// next is the first secret that does not begin before from.
func next[T string | []byte](s *scanner, text T, from int) (secret, bool) {
	for i := from; i+window <= len(text); {
		step := s.table[block(text, i+1)]
		if step < listed {
			i += int(step)
			continue
		}
		if l := &s.lists[step-listed]; l.first[text[i]] {
			for j := range l.rules {
				if found, ok := at(&l.rules[j], text, i, from); ok {
					return found, true
				}
			}
		}
		i++
	}
	return secret{}, false
}

// at is the secret whose anchor is at i, if there is one.
func at[T string | []byte](r *rule, text T, i, from int) (secret, bool) {
	start := i - r.before
	if len(text)-i < len(r.anchor) || string(text[i:i+len(r.anchor)]) != r.anchor || start < from {
		return secret{}, false
	}
	if r.form == nil {
		return secret{r.kind, start, i + len(r.anchor), true}, true
	}
	if start > 0 && inWord(text[start-1]) && !escaped(text, start) {
		return secret{}, false
	}
	n := matched(r.form, text[start:])
	if n == 0 {
		return secret{}, false
	}
	if r.real == nil {
		n = privateKey(text[start:min(start+reach, len(text))], n)
	} else if !r.real(string(text[start : start+n])) {
		n = 0
	}
	if n == 0 || start+n < len(text) && text[start+n] != '-' && inWord(text[start+n]) {
		return secret{}, false
	}
	return secret{r.kind, start, start + n, false}, true
}

// matched is how long what a form matches is, at the beginning of a text.
func matched[T string | []byte](form *regexp.Regexp, text T) int {
	var at []int
	switch text := any(text).(type) {
	case string:
		at = form.FindStringIndex(text)
	case []byte:
		at = form.FindIndex(text)
	}
	if at == nil {
		return 0
	}
	return at[1]
}

func inWord(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}

// escaped says that the letter before is the end of something that is no word:
// an escape of JSON, since arguments of calls are JSON within text, or of a URL,
// or a colour of a terminal.
func escaped[T string | []byte](text T, at int) bool {
	before := string(text[max(0, at-12):at])
	return escape.MatchString(before)
}

// escape matches the end of what stands before a secret.
var escape = lazyregexp.New(`(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\[[0-9;]{0,8}m)$`)

// redact takes secrets out of a text. Those that leave says may stay do, and
// found is told of all.
func redact[T string | []byte](s *scanner, text T, leave func(secret) bool, found func(secret, bool)) T {
	var out []byte
	done := 0
	for from := 0; ; {
		hit, ok := next(s, text, from)
		if !ok {
			break
		}
		left := leave != nil && leave(hit)
		found(hit, left)
		if !left {
			out = append(append(out, text[done:hit.from]...), redacted...)
			done = hit.to
		}
		from = hit.to
	}
	if done == 0 {
		return text
	}
	return T(append(out, text[done:]...))
}
