package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
)

// Every server accepts ids that match validID and names that match validName.
var (
	validID          = lazyregexp.New(`^[!-~]{1,256}$`)
	validName        = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)
	invalidNameChars = lazyregexp.New(`[^A-Za-z0-9_-]+`)
)

// sanitizeCalls returns calls that a history can contain. Models write calls
// without an id, with a duplicate id, an invalid name or arguments that are not
// a JSON object, and servers reject a whole conversation that contains one. n
// is the number of the reply.
func sanitizeCalls(calls []model.ToolCall, n int) []model.ToolCall {
	if len(calls) == 0 {
		return nil
	}
	used := map[string]bool{}
	for _, c := range calls {
		used[c.ID] = true
	}
	seen := map[string]bool{}
	out := make([]model.ToolCall, len(calls))
	for i, c := range calls {
		if !validID.MatchString(c.ID) || seen[c.ID] {
			c.ID = uniqueID(n, i, used)
		}
		seen[c.ID], used[c.ID] = true, true
		if !validName.MatchString(c.Name) {
			c.Name = sanitizeName(c.Name)
		}
		if !isObject(c.Arguments) {
			c.Arguments = wrapArguments(c.Arguments)
		}
		out[i] = c
	}
	return out
}

// uniqueID returns an id for call i of reply n that is not in used.
func uniqueID(n, i int, used map[string]bool) string {
	id := fmt.Sprintf("call_%d_%d", n, i+1)
	for used[id] {
		id += "x"
	}
	return id
}

// sanitizeName returns a valid name that is like name: each sequence of invalid
// characters becomes _, then _ at both ends is removed. It returns "unknown" if
// nothing is left.
func sanitizeName(name string) string {
	const limit = 64
	name = strings.Trim(invalidNameChars.ReplaceAllString(name[:min(len(name), 4*limit)], "_"), "_")
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), limit)]
}

func isObject(arguments string) bool {
	return strings.HasPrefix(strings.TrimLeft(arguments, " \t\r\n"), "{") &&
		utf8.ValidString(arguments) && json.Valid([]byte(arguments))
}

// wrapKey is the key of the object that wraps invalid arguments.
const wrapKey = "not_json"

// wrapArguments puts arguments that are not a JSON object into one as a string,
// so that the model sees what it wrote. The record of the model call keeps them
// unchanged.
func wrapArguments(arguments string) string {
	return jsonObject(wrapKey, strings.ToValidUTF8(arguments, "\uFFFD"))
}

// jsonObject returns a JSON object with one key. It does not escape HTML
// characters, so that commands stay readable in the journal.
func jsonObject(key, value string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]string{key: value}); err != nil { // a string can always be encoded
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
