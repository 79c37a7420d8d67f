package filter

import (
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories"
)

// SecretPolicy determines how attempts with secrets are exported. No policy exports a
// known secret.
type SecretPolicy string

// The secret policies.
const (
	SecretsRedact SecretPolicy = "redact" // replace secrets by "[redacted]", see SecretLocation.NotRemoved
	SecretsDrop   SecretPolicy = "drop"   // drop the attempt
	SecretsRefuse SecretPolicy = "refuse" // export nothing
)

func policyNames() []string {
	return []string{string(SecretsRedact), string(SecretsDrop), string(SecretsRefuse)}
}

// KnownSecret is a secret value with a name, for example an environment variable. Reports
// contain only the name.
type KnownSecret struct{ Name, Value string }

// Minimum lengths of known secrets, in bytes. The scanner does not search for shorter
// values, such as "none", "dummy" and "postgres", since unrelated text contains them.
const (
	minKnown   = 8
	minLetters = 16 // if the value has only letters
)

// redacted is the replacement for a secret.
const redacted = "[redacted]"

// scanner searches text for secrets.
type scanner struct {
	rules        []rule
	skippedNames []string // names of known secrets that are too short
}

// rule matches a kind of secret.
type rule struct {
	kind string
	// anchor is a substring of the secret, which starts anchorOffset bytes after the
	// start of the secret.
	anchor       string
	anchorOffset int
	// pattern matches the secret from its start. It is nil for a known secret, whose
	// anchor is the whole secret.
	pattern *regexp.Regexp
	// isReal reports whether a match of pattern is a secret. It is nil for private
	// keys, of which pattern matches only the first line.
	isReal func(match string) bool
}

func newScanner(secrets []KnownSecret) (*scanner, error) {
	keys, err := keyRules()
	if err != nil {
		return nil, err
	}
	s := &scanner{}
	var knownRules []rule
	for _, known := range secrets {
		value := strings.TrimSpace(known.Value)
		if isTooShort(value) {
			if value != "" {
				s.skippedNames = append(s.skippedNames, known.Name)
			}
			continue
		}
		for _, encoding := range encodings(value) {
			knownRules = append(knownRules, rule{kind: "value of " + known.Name, anchor: encoding})
		}
	}
	// Longer known secrets come first, since one may be a prefix of another. They come
	// before key formats, so that the report has their name.
	slices.SortStableFunc(knownRules, func(a, b rule) int { return len(b.anchor) - len(a.anchor) })
	slices.Sort(s.skippedNames)
	s.rules = append(knownRules, keys...)
	return s, nil
}

// isTooShort reports whether unrelated text may contain a value.
func isTooShort(value string) bool {
	if len(value) >= minLetters {
		return false
	}
	return len(value) < minKnown || strings.IndexFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// encodings returns the forms in which text may contain a value: unchanged, as part of a
// URL, of a JSON string, or of JSON in a JSON string, such as arguments of tool calls.
func encodings(value string) []string {
	list := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	for previous := []string{value}; len(list) < 3+2+4; {
		var quoted []string
		for _, text := range previous {
			quoted = append(quoted, escapeJSON(text, json.Marshal), escapeJSON(text, trajectories.EncodeJSON)) // only json.Marshal escapes <, > and &
		}
		list, previous = append(list, quoted...), quoted
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// escapeJSON returns text with JSON escapes, as written by encode.
func escapeJSON(text string, encode func(any) ([]byte, error)) string {
	quoted, err := encode(text)
	if err != nil || len(quoted) < 2 {
		return text
	}
	return string(quoted[1 : len(quoted)-1])
}

// secret is the position of a secret in a text.
type secret struct {
	kind     string
	from, to int  // to is exclusive
	isKnown  bool // a KnownSecret
}

// find returns the secrets in a text, which do not overlap. Of several at one place it returns
// that of the first rule.
func (s *scanner) find(text string) []secret {
	type candidate struct {
		secret
		anchorAt, rule int
	}
	var all []candidate
	for i := range s.rules {
		r := &s.rules[i]
		for at := 0; ; at++ {
			next := strings.Index(text[at:], r.anchor)
			if next < 0 {
				break
			}
			at += next
			if found, ok := r.match(text, at); ok {
				all = append(all, candidate{found, at, i})
			}
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(a.anchorAt-b.anchorAt, a.rule-b.rule) })
	var secrets []secret
	end := 0
	for _, c := range all {
		if c.from >= end {
			secrets, end = append(secrets, c.secret), c.to
		}
	}
	return secrets
}

// match returns the secret whose anchor is at the given position, if the rule matches.
func (r *rule) match(text string, anchorAt int) (secret, bool) {
	start := anchorAt - r.anchorOffset
	switch {
	case r.pattern == nil:
		return secret{r.kind, start, anchorAt + len(r.anchor), true}, true
	case start < 0, start > 0 && isWordByte(text[start-1]) && !isAfterEscape(text, start):
		return secret{}, false
	}
	length := len(r.pattern.FindString(text[start:]))
	if length > 0 && r.isReal == nil {
		length = privateKeyEnd(text[start:min(start+maxPrivateKey, len(text))], length)
	} else if length > 0 && !r.isReal(text[start:start+length]) {
		length = 0
	}
	if length == 0 || start+length < len(text) && text[start+length] != '-' && isWordByte(text[start+length]) {
		return secret{}, false
	}
	return secret{r.kind, start, start + length, false}, true
}

// isWordByte reports whether b can be part of a word or a key.
func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}

// isAfterEscape reports whether an escape sequence of JSON, a URL or a terminal ends at
// start. If so, the character before start is not part of a word.
func isAfterEscape(text string, start int) bool {
	return escapeAtEnd.MatchString(text[max(0, start-12):start])
}

// escapeAtEnd matches text that ends with an escape sequence.
var escapeAtEnd = lazyregexp.New(`(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\[[0-9;]{0,8}m)$`)

// redact removes secrets from text, except those for which keep returns true; keep may be
// nil. It calls found for each secret with the result of keep.
func redact(s *scanner, text string, keep func(secret) bool, found func(secret, bool)) string {
	return replace(s, text, keep, found, func(hit secret) (int, string) { return hit.from, redacted })
}

// replace is redact with another replacement: of the text from a position to the end of the
// secret.
func replace(s *scanner, text string, keep func(secret) bool, found func(secret, bool), by func(secret) (from int, text string)) string {
	var out strings.Builder
	end := 0
	for _, hit := range s.find(text) {
		kept := keep != nil && keep(hit)
		found(hit, kept)
		if !kept {
			from, replacement := by(hit)
			out.WriteString(text[end:from] + replacement)
			end = hit.to
		}
	}
	return out.String() + text[end:]
}
