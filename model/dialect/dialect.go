// Package dialect reads and edits requests and answers in the providers' own forms: chat
// completions, Responses, Messages and Gemini. Agents other than mini's own ask in one of
// them, and the provider answers in the same.
//
// The package sends nothing; package model/raw does.
package dialect

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
)

// Dialect is one form of requests and answers.
type Dialect interface {
	Name() string
	// Messages returns the conversation of a request. The error is for the agent.
	Messages(b *Body) ([]model.Message, error)
	// Reply reads a whole answer, Stream the data of the events of a streamed one. With
	// an error, the reply has the usage that is known.
	Reply(body []byte, p model.Price) (model.Reply, error)
	Stream(events iter.Seq2[[]byte, error], p model.Price) (model.Reply, error)
	// IsTerminal reports whether an event ends the answer: the agent may exit after it.
	IsTerminal(data []byte) bool
	// HasEventNames reports whether the type of an event is also its name.
	HasEventNames() bool
	// Problem returns the body of an error response.
	Problem(status int, message string) []byte
	// keepTool returns a tool as the provider may get it, nil if the tool runs at the
	// provider, and whether it is unchanged.
	keepTool(tool json.RawMessage) (kept json.RawMessage, unchanged bool)
	// fields are the names of the fields of a request that the provider gets. Others make
	// it use the network, store something or ask other models, or are unknown.
	fields() []string
}

// Names are the names of all dialects.
var Names = []string{"chat", "responses", "messages", "gemini"}

// ByName returns a dialect; nil if there is none.
func ByName(name string) Dialect {
	switch name {
	case "chat":
		return chat{}
	case "responses":
		return responses{}
	case "messages":
		return messages{}
	case "gemini":
		return gemini{}
	}
	return nil
}

// RemoveServerTools removes from a request the tools that run at the provider, and returns
// their names: they would reach the network that the sandbox cannot.
func RemoveServerTools(d Dialect, b *Body) (removed []string) {
	var tools, kept []json.RawMessage
	if json.Unmarshal(b.Get("tools"), &tools) != nil || len(tools) == 0 {
		return removed
	}
	changed := false
	for _, tool := range tools {
		keep, unchanged := d.keepTool(tool)
		if keep != nil {
			kept = append(kept, keep)
		}
		if !unchanged {
			changed = true
			removed = append(removed, toolName(tool))
		}
	}
	switch {
	case !changed:
	case len(kept) == 0:
		for _, name := range []string{"tools", "tool_choice", "toolConfig", "parallel_tool_calls"} {
			b.Delete(name)
		}
	default:
		list, _ := json.Marshal(kept) // parts of valid JSON
		b.Set("tools", list)
	}
	return removed
}

// toolName describes a tool in the record of an edit.
func toolName(tool json.RawMessage) string {
	var t struct{ Type, Name string }
	_ = json.Unmarshal(tool, &t) // a tool of another form has no name
	name := strings.TrimSpace(t.Type + " " + t.Name)
	if name == "" {
		name = string(tool)
	}
	return name[:min(len(name), 80)]
}

// keepTypes is keepTool for tools that have a type.
func keepTypes(tool json.RawMessage, types ...string) (json.RawMessage, bool) {
	var t struct{ Type string }
	if json.Unmarshal(tool, &t) == nil && slices.ContainsFunc(types, func(prefix string) bool {
		date, isVersion := strings.CutPrefix(t.Type, prefix)
		return t.Type == prefix || strings.HasSuffix(prefix, "_") && isVersion && strings.Trim(date, "0123456789") == ""
	}) {
		return tool, true
	}
	return nil, false
}

// HasTools reports whether a request offers tools.
func HasTools(b *Body) bool {
	var tools []json.RawMessage
	return json.Unmarshal(b.Get("tools"), &tools) == nil && len(tools) > 0
}

// IsError reports whether an event or an answer is an error.
func IsError(data []byte) bool {
	var e struct {
		Type  string
		Error json.RawMessage
	}
	return json.Unmarshal(data, &e) == nil && (e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null" && e.Type == "")
}

// partsText returns the texts of a content, which is a text or a list of parts.
func partsText(content json.RawMessage) string {
	var all paragraphs
	all.add(text(content))
	var parts []struct{ Text, Refusal string }
	_ = json.Unmarshal(content, &parts) // a text has no parts
	for _, p := range parts {
		all.add(p.Text)
		all.add(p.Refusal)
	}
	return all.String()
}

// join appends a paragraph.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
