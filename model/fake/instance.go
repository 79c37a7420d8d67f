package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// InstanceHeader names the instance of a request.
const InstanceHeader = "X-Fake-Instance"

// unnamed begins the name of a conversation that has no name of the script in it.
const unnamed = "conversation-"

// names finds instances in text.
type names struct {
	words map[string]bool
	odd   []string // those that are not one word
}

func newNames(list []string) names {
	n := names{words: map[string]bool{}}
	for _, name := range list {
		if strings.ContainsFunc(name, notInWord) {
			n.odd = append(n.odd, name)
		} else {
			n.words[name] = true
		}
	}
	return n
}

// notInWord says which characters part words: not those of instance ids.
func notInWord(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("_-./", r)
}

// find returns the longest name in a text, empty for none.
func (n names) find(text string) string {
	var best string
	consider := func(name string) {
		if len(name) > len(best) {
			best = name
		}
	}
	for word := range strings.FieldsFuncSeq(text, notInWord) {
		for _, w := range []string{word, strings.Trim(word, "./-")} {
			if n.words[w] {
				consider(w)
			}
		}
	}
	for _, name := range n.odd {
		if strings.Contains(text, name) {
			consider(name)
		}
	}
	return best
}

// instance says whose request it is; see the comment of the package.
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
