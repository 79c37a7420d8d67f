package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// InstanceHeader is the request header with the instance ID.
const InstanceHeader = "X-Fake-Instance"

// unnamed is the prefix of the names of conversations without an instance ID.
const unnamed = "conversation-"

// names finds instance IDs in text.
type names struct {
	words   map[string]bool // IDs that are a single word
	phrases []string        // other IDs
}

func newNames(list []string) names {
	n := names{words: map[string]bool{}}
	for _, name := range list {
		if strings.ContainsFunc(name, isSeparator) {
			n.phrases = append(n.phrases, name)
		} else {
			n.words[name] = true
		}
	}
	return n
}

// isSeparator reports whether r separates words. Characters of instance IDs do not.
func isSeparator(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("_-./", r)
}

// find returns the longest known name in text, or "".
func (n names) find(text string) string {
	var best string
	consider := func(name string) {
		if len(name) > len(best) {
			best = name
		}
	}
	for word := range strings.FieldsFuncSeq(text, isSeparator) {
		for _, w := range []string{word, strings.Trim(word, "./-")} {
			if n.words[w] {
				consider(w)
			}
		}
	}
	for _, name := range n.phrases {
		if strings.Contains(text, name) {
			consider(name)
		}
	}
	return best
}

// instance returns the instance of a request; see the package comment.
func (n names) instance(h http.Header, r *request) string {
	if name := h.Get(InstanceHeader); name != "" {
		return clip(name)
	}
	opening := r.opening()
	parts := make([]string, len(opening))
	for i, t := range opening {
		parts[i] = t.text
	}
	text := strings.Join(slices.Clip(parts), "\n")
	if name := n.find(text); name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	return unnamed + hex.EncodeToString(sum[:4])
}
