package filter

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

// scanner searches text for all rules in one pass. Every secret that matches a rule
// contains the anchor of the rule. To find the start of an anchor, the scanner examines
// three bytes at a time: it looks up the last two of them in table. The entry is the number
// of bytes to skip, usually two, or refers to the rules whose anchor may start here.
type scanner struct {
	table        [1 << 16]uint8 // below listBase: bytes to skip; otherwise listBase + an index in lists
	lists        []ruleList
	skippedNames []string // names of known secrets that are too short
}

// ruleList has the rules whose anchors have the same second and third byte.
type ruleList struct {
	firstBytes [256]bool // the first bytes of the anchors
	rules      []rule
}

// window is the number of bytes examined at a time, and the minimum length of an anchor.
const (
	window   = 3
	listBase = window
)

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
	return s, s.addRules(append(knownRules, keys...))
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

// addRules fills the table and the lists.
func (s *scanner) addRules(rules []rule) error {
	for i := range s.table {
		s.table[i] = window - 1
	}
	for _, r := range rules {
		s.table[tableIndex(r.anchor, 0)] = 1
	}
	for _, r := range rules {
		entry := &s.table[tableIndex(r.anchor, 1)]
		if *entry < listBase {
			if listBase+len(s.lists) > 255 { // an entry has 8 bits; only hundreds of known secrets need more
				return fmt.Errorf("too many different keys in the environment to search for: more than %d", len(s.lists))
			}
			*entry = uint8(listBase + len(s.lists))
			s.lists = append(s.lists, ruleList{})
		}
		list := &s.lists[*entry-listBase]
		list.firstBytes[r.anchor[0]] = true
		list.rules = append(list.rules, r)
	}
	return nil
}

// tableIndex returns the index in table for the two bytes at the given position.
func tableIndex[T string | []byte](text T, at int) int { return int(text[at])<<8 | int(text[at+1]) }

// secret is the position of a secret in a text.
type secret struct {
	kind     string
	from, to int  // to is exclusive
	isKnown  bool // a KnownSecret
}

// nextSecret returns the first secret that starts at or after from.
func nextSecret[T string | []byte](s *scanner, text T, from int) (secret, bool) {
	for i := from; i+window <= len(text); {
		step := s.table[tableIndex(text, i+1)]
		if step < listBase {
			i += int(step)
			continue
		}
		if list := &s.lists[step-listBase]; list.firstBytes[text[i]] {
			for j := range list.rules {
				if found, ok := matchAt(&list.rules[j], text, i, from); ok {
					return found, true
				}
			}
		}
		i++
	}
	return secret{}, false
}

// matchAt returns the secret whose anchor is at the given position, if the rule matches
// and the secret does not start before from.
func matchAt[T string | []byte](r *rule, text T, anchorAt, from int) (secret, bool) {
	start := anchorAt - r.anchorOffset
	if len(text)-anchorAt < len(r.anchor) || string(text[anchorAt:anchorAt+len(r.anchor)]) != r.anchor || start < from {
		return secret{}, false
	}
	if r.pattern == nil {
		return secret{r.kind, start, anchorAt + len(r.anchor), true}, true
	}
	if start > 0 && isWordByte(text[start-1]) && !isAfterEscape(text, start) {
		return secret{}, false
	}
	length := matchLen(r.pattern, text[start:])
	if length == 0 {
		return secret{}, false
	}
	if r.isReal == nil {
		length = privateKeyEnd(text[start:min(start+maxPrivateKey, len(text))], length)
	} else if !r.isReal(string(text[start : start+length])) {
		length = 0
	}
	if length == 0 || start+length < len(text) && text[start+length] != '-' && isWordByte(text[start+length]) {
		return secret{}, false
	}
	return secret{r.kind, start, start + length, false}, true
}

// matchLen returns the length of the match at the start of text, or 0.
func matchLen[T string | []byte](pattern *regexp.Regexp, text T) int {
	var span []int
	switch text := any(text).(type) {
	case string:
		span = pattern.FindStringIndex(text)
	case []byte:
		span = pattern.FindIndex(text)
	}
	if span == nil {
		return 0
	}
	return span[1]
}

// isWordByte reports whether b can be part of a word or a key.
func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}

// isAfterEscape reports whether an escape sequence of JSON, a URL or a terminal ends at
// start. If so, the character before start is not part of a word.
func isAfterEscape[T string | []byte](text T, start int) bool {
	prefix := string(text[max(0, start-12):start])
	return escapeAtEnd.MatchString(prefix)
}

// escapeAtEnd matches text that ends with an escape sequence.
var escapeAtEnd = lazyregexp.New(`(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\[[0-9;]{0,8}m)$`)

// redact removes secrets from text, except those for which keep returns true; keep may be
// nil. It calls found for each secret with the result of keep.
func redact[T string | []byte](s *scanner, text T, keep func(secret) bool, found func(secret, bool)) T {
	var out []byte
	end := 0
	for from := 0; ; {
		hit, ok := nextSecret(s, text, from)
		if !ok {
			break
		}
		kept := keep != nil && keep(hit)
		found(hit, kept)
		if !kept {
			out = append(append(out, text[end:hit.from]...), redacted...)
			end = hit.to
		}
		from = hit.to
	}
	if end == 0 {
		return text
	}
	return T(append(out, text[end:]...))
}
