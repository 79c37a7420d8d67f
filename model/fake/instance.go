package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"unicode"
)

// InstanceHeader is the request header with the instance ID.
const InstanceHeader = "X-Fake-Instance"

// unnamed is the prefix of the names of conversations without an instance ID.
const unnamed = "conversation-"

// instance returns the instance of a request; see the package comment.
func (s *Server) instance(h http.Header, r *request) string {
	if name := h.Get(InstanceHeader); name != "" {
		return name
	}
	var parts []string
	for _, t := range r.opening() {
		parts = append(parts, t.text)
	}
	text, best := strings.Join(parts, "\n"), ""
	inText := words(text)
	for _, id := range s.config.Script.InstanceIDs() {
		if len(id) > len(best) && strings.Contains(inText, words(id)) {
			best = id
		}
	}
	if best != "" {
		return best
	}
	sum := sha256.Sum256([]byte(text))
	return unnamed + hex.EncodeToString(sum[:4])
}

// words returns the words of a text, with a space before and after each. Characters of instance IDs
// are parts of words, except dots.
func words(text string) string {
	return " " + strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-/", r)
	}), " ") + " "
}
