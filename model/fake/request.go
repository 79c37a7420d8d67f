package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/minibench/mini/model"
)

// request is a request in an API-independent form.
type request struct {
	model    string
	stream   bool
	turns    []turn // including the system prompt
	extra    int    // bytes of the tools, which the prompt has besides the turns
	tool     string // name of the tool for commands; "" if none may be called
	thinking bool   // an Anthropic request enables thinking
	// marked is the index of the last turn with a cache_control, or -1. It matters
	// only if needsMark is set: OpenAI caches without marks.
	marked    int
	needsMark bool
	// usageEvent reports that a stream includes the usage, cost that the usage includes
	// the cost.
	usageEvent, cost bool
}

// turn is one message.
type turn struct {
	role  string
	bytes int    // size of its JSON
	text  string // where instance IDs are searched
}

// wireFormat is one of the APIs.
type wireFormat interface {
	api() string
	parse(body []byte) (*request, *problem)
	// plain returns a reply as one JSON object, events as a stream.
	plain(m *message) any
	events(m *message) [][]byte
	// startUsage is the usage reported at the start of a stream; nil if it is
	// reported only at the end.
	startUsage(m *message) *model.Usage
	// problem returns the body of an error response.
	problem(p problem, id string) []byte
	// headers sets the headers of every response.
	headers(h http.Header, id string)
}

// step returns the number of the requested reply, from 1.
func (r *request) step() int { return r.assistants() + 1 }

func (r *request) assistants() int {
	n := 0
	for _, t := range r.turns {
		if t.role == "assistant" {
			n++
		}
	}
	return n
}

// opening returns the messages before the first reply.
func (r *request) opening() []turn {
	for i, t := range r.turns {
		if t.role == "assistant" {
			return r.turns[:i]
		}
	}
	return r.turns
}

// usage estimates the usage of the prompt, at four bytes per token. The messages
// before the last reply were sent in the previous step and come from the cache.
func (r *request) usage() model.Usage {
	cached, marked, all := r.extra, 0, r.extra
	for i, t := range r.turns {
		if t.role == "assistant" {
			cached = all
		}
		all += t.bytes
		if i <= r.marked {
			marked = all
		}
	}
	if r.assistants() == 0 {
		cached = 0
	}
	u := model.Usage{Prompt: tokens(all), CacheRead: tokens(cached)}
	if r.needsMark {
		u.CacheRead = tokens(min(cached, marked))
		u.CacheWrite = tokens(marked) - u.CacheRead
	}
	return u
}

// tokens returns the number of tokens in a text of the given length.
func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

// key returns the API key of a request, from any of its headers.
func key(r *http.Request) string {
	if k := r.Header.Get("X-Api-Key"); k != "" {
		return k
	}
	if k := r.Header.Get("X-Goog-Api-Key"); k != "" {
		return k
	}
	k := r.Header.Get("Authorization")
	if scheme, rest, ok := strings.Cut(k, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(rest)
	}
	return k
}

func (s *Server) isKeyValid(r *http.Request) bool {
	return s.config.CheckKey == nil || s.config.CheckKey(key(r))
}

// decode reads a JSON body. Its errors are worded like the providers'.
func decode(body []byte, v any) *problem {
	err := json.Unmarshal(body, v)
	if typeError, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return invalid(fmt.Sprintf("Invalid type for '%s': got %s.", typeError.Field, typeError.Value))
	}
	if err != nil {
		return invalid("We could not parse the JSON body of your request.")
	}
	return nil
}

// texts returns the text of a content, a string or a list of parts.
func texts(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = p.Text
	}
	return strings.Join(all, "\n")
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// commandTool returns the name of the tool for commands, or "".
func commandTool(tools []tool) string {
	for _, t := range tools {
		if t.Name == "bash" {
			return t.Name
		}
	}
	for _, t := range tools {
		if _, ok := t.Parameters.Properties["command"]; ok {
			return t.Name
		}
	}
	return ""
}

// tool is a tool in an API-independent form.
type tool struct {
	Name       string
	Parameters struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
}
