package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
)

// What every server takes back as the id of a call, and as its name.
var (
	goodID   = lazyregexp.New(`^[!-~]{1,256}$`)
	goodName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)
	notName  = lazyregexp.New(`[^A-Za-z0-9_-]+`)
)

// presentable is calls as a history can have them. Servers refuse a whole
// conversation for a call without an id, with another's id, with a name that is
// none or with arguments that are no JSON, and models write all of these.
func presentable(calls []model.Call, n int) []model.Call {
	if len(calls) == 0 {
		return nil
	}
	taken := map[string]bool{}
	for _, c := range calls {
		taken[c.ID] = true
	}
	seen := map[string]bool{}
	out := make([]model.Call, len(calls))
	for i, c := range calls {
		if !goodID.MatchString(c.ID) || seen[c.ID] {
			c.ID = freeID(n, i, taken)
		}
		seen[c.ID], taken[c.ID] = true, true
		if !goodName.MatchString(c.Name) {
			c.Name = nameOf(c.Name)
		}
		if !isObject(c.Arguments) {
			c.Arguments = quoted(c.Arguments)
		}
		out[i] = c
	}
	return out
}

// freeID is an id that no call of the reply has.
func freeID(n, i int, taken map[string]bool) string {
	id := fmt.Sprintf("call_%d_%d", n, i+1)
	for taken[id] {
		id += "x"
	}
	return id
}

// nameOf is what is left of a name when only what may be in one is.
func nameOf(name string) string {
	const most = 64
	name = strings.Trim(notName.ReplaceAllString(name[:min(len(name), 4*most)], "_"), "_")
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), most)]
}

func isObject(arguments string) bool {
	return strings.HasPrefix(strings.TrimLeft(arguments, " \t\r\n"), "{") &&
		utf8.ValidString(arguments) && json.Valid([]byte(arguments))
}

// notJSON is the key of arguments that are no object.
const notJSON = "not_json"

// quoted is what is no object within one. The model sees what it wrote, and
// the call's record has it to the byte.
func quoted(arguments string) string {
	return object(notJSON, strings.ToValidUTF8(arguments, "\uFFFD"))
}

// object is JSON with one key, without the escapes for HTML: a command is to be
// readable where it is recorded.
func object(key, value string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]string{key: value}); err != nil { // a string always has a form
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
