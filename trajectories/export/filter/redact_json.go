package filter

import (
	"encoding/json"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// jsonString matches a JSON string.
var jsonString = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)

// redactJSON is redact for JSON, which stays valid. It searches each string and then the
// whole text, since a secret may span strings: a setting and its value, or a private key
// whose last line is missing. It treats invalid JSON as text.
func redactJSON(s *scanner, text string, keep func(secret) bool, found func(secret, bool)) string {
	if len(s.find(text)) == 0 {
		return text
	}
	if !json.Valid([]byte(text)) {
		return redact(s, text, keep, found)
	}
	text = jsonString.ReplaceAllStringFunc(text, func(quoted string) string {
		return `"` + redact(s, quoted[1:len(quoted)-1], keep, found) + `"`
	})
	// Of a secret that spans strings, only the part in the last one is replaced; a secret
	// without quotes is replaced by a string.
	return replace(s, text, keep, found, func(hit secret) (int, string) {
		if quote := strings.LastIndexByte(text[hit.from:hit.to], '"'); quote >= 0 {
			return hit.from + quote + 1, redacted
		}
		return hit.from, `"` + redacted + `"`
	})
}
