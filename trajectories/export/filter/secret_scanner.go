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

// SecretPolicy is what to do with attempts that contain secrets. No policy exports a
// secret.
type SecretPolicy string

// The policies.
const (
	SecretsRedact SecretPolicy = "redact" // replace secrets by "[redacted]"
	SecretsDrop   SecretPolicy = "drop"   // drop the attempt
	SecretsRefuse SecretPolicy = "refuse" // export nothing
)

func secretModes() []string {
	return []string{string(SecretsRedact), string(SecretsDrop), string(SecretsRefuse)}
}

// KnownSecret is a secret value with a name, such as that of an environment variable.
// Reports contain only the name.
type KnownSecret struct{ Name, Value string }

// Minimum length of known secrets, in bytes. Shorter values ("none", "dummy",
// "postgres") occur in unrelated text.
const (
	minKnown   = 8
	minLetters = 16 // if the value has only letters
)

// redacted replaces a secret.
const redacted = "[redacted]"

// scanner searches for all rules in one pass. Each rule has an anchor, a substring of
// everything it matches. For each position the scanner looks up the last two bytes of
// a window of three in a table. It gives the number of bytes to skip, usually two, or
// the rules that may match.
type scanner struct {
	table        [1 << 16]uint8 // below listBase: bytes to skip; otherwise listBase + an index in lists
	lists        []ruleList
	skippedNames []string // names of values that are too short
}

// ruleList has the rules whose anchors have the same second and third byte. firstBytes
// are the possible first bytes.
type ruleList struct {
	firstBytes [256]bool
	rules      []rule
}

// window is the number of bytes examined at each position, and the minimum length of
// an anchor.
const (
	window   = 3
	listBase = window
)

// rule matches a kind of secret.
type rule struct {
	kind string
	// anchor is the substring to search for. It starts anchorOffset bytes after the
	// start of the secret.
	anchor       string
	anchorOffset int
	// pattern matches the secret from its start. It is nil for a known value, which
	// the anchor matches completely.
	pattern *regexp.Regexp
	// isReal reports whether a match is a secret. It is nil for private keys, where
	// pattern matches only the first line.
	isReal func(match string) bool
}

func newScanner(secrets []KnownSecret) (*scanner, error) {
	rules, err := keyRules()
	if err != nil {
		return nil, err
	}
	s := &scanner{}
	var values []rule
	for _, k := range secrets {
		value := strings.TrimSpace(k.Value)
		if isOrdinary(value) {
			if value != "" {
				s.skippedNames = append(s.skippedNames, k.Name)
			}
			continue
		}
		for _, encoding := range encodings(value) {
			values = append(values, rule{kind: "value of " + k.Name, anchor: encoding})
		}
	}
	// Longer values come first, since one may be a prefix of another. Known values
	// come before patterns, so that their name is reported.
	slices.SortStableFunc(values, func(a, b rule) int { return len(b.anchor) - len(a.anchor) })
	slices.Sort(s.skippedNames)
	return s, s.index(append(values, rules...))
}

// isOrdinary reports whether a value may occur in unrelated text.
func isOrdinary(value string) bool {
	if len(value) >= minLetters {
		return false
	}
	return len(value) < minKnown || strings.IndexFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// encodings returns the forms in which a value may be written: plain, in JSON, in
// JSON inside JSON (such as arguments of tool calls), and in a URL.
func encodings(value string) []string {
	list := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	for previous := []string{value}; len(list) < 3+2+4; {
		var quoted []string
		for _, text := range previous {
			quoted = append(quoted, inJSON(text, json.Marshal), inJSON(text, trajectories.EncodeJSON)) // one of them escapes < and &
		}
		list, previous = append(list, quoted...), quoted
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// inJSON returns the content of a JSON string.
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
		s.table[byteIndex(r.anchor, 0)] = 1
	}
	for _, r := range rules {
		at := &s.table[byteIndex(r.anchor, 1)]
		if *at < listBase {
			if listBase+len(s.lists) > 255 { // there are hundreds of keys in the environment
				return fmt.Errorf("too many different keys in the environment to search for: more than %d", len(s.lists))
			}
			*at = uint8(listBase + len(s.lists))
			s.lists = append(s.lists, ruleList{})
		}
		l := &s.lists[*at-listBase]
		l.firstBytes[r.anchor[0]] = true
		l.rules = append(l.rules, r)
	}
	return nil
}

func byteIndex[T string | []byte](text T, at int) int { return int(text[at])<<8 | int(text[at+1]) }

// secret is the position of a secret.
type secret struct {
	kind     string
	from, to int
	isKnown  bool
}

// nextSecret returns the first secret that starts at or after from.
func nextSecret[T string | []byte](s *scanner, text T, from int) (secret, bool) {
	for i := from; i+window <= len(text); {
		step := s.table[byteIndex(text, i+1)]
		if step < listBase {
			i += int(step)
			continue
		}
		if l := &s.lists[step-listBase]; l.firstBytes[text[i]] {
			for j := range l.rules {
				if found, ok := matchAt(&l.rules[j], text, i, from); ok {
					return found, true
				}
			}
		}
		i++
	}
	return secret{}, false
}

// matchAt returns the secret whose anchor is at i, if the rule matches.
func matchAt[T string | []byte](r *rule, text T, i, from int) (secret, bool) {
	start := i - r.anchorOffset
	if len(text)-i < len(r.anchor) || string(text[i:i+len(r.anchor)]) != r.anchor || start < from {
		return secret{}, false
	}
	if r.pattern == nil {
		return secret{r.kind, start, i + len(r.anchor), true}, true
	}
	if start > 0 && isWordByte(text[start-1]) && !afterEscape(text, start) {
		return secret{}, false
	}
	n := matchLen(r.pattern, text[start:])
	if n == 0 {
		return secret{}, false
	}
	if r.isReal == nil {
		n = privateKeyEnd(text[start:min(start+maxPrivateKey, len(text))], n)
	} else if !r.isReal(string(text[start : start+n])) {
		n = 0
	}
	if n == 0 || start+n < len(text) && text[start+n] != '-' && isWordByte(text[start+n]) {
		return secret{}, false
	}
	return secret{r.kind, start, start + n, false}, true
}

// matchLen returns the length of the match at the start of text.
func matchLen[T string | []byte](pattern *regexp.Regexp, text T) int {
	var at []int
	switch text := any(text).(type) {
	case string:
		at = pattern.FindStringIndex(text)
	case []byte:
		at = pattern.FindIndex(text)
	}
	if at == nil {
		return 0
	}
	return at[1]
}

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}

// afterEscape reports whether the character before start belongs to an escape
// sequence of JSON, a URL or a terminal, and not to a word.
func afterEscape[T string | []byte](text T, at int) bool {
	prefix := string(text[max(0, at-12):at])
	return escape.MatchString(prefix)
}

// escape matches an escape sequence at the end.
var escape = lazyregexp.New(`(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\[[0-9;]{0,8}m)$`)

// redact removes secrets from text, except those that keep returns true for. It calls
// found for each secret.
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
