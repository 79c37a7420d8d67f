package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// request is what both APIs have in common of a request.
type request struct {
	model    string
	stream   bool
	turns    []turn // the system prompt is one of them
	extra    int    // bytes of the prompt beside the turns: tools
	tool     string // the one that commands go to; empty for none
	thinking bool   // it was asked for, in Anthropic's way
	// marked is the last turn with a cache_control, -1 for none; where caching
	// needs no mark it is not looked at.
	marked    int
	needsMark bool
	// usageEvent and cost say what a reply is to tell of its usage.
	usageEvent, cost bool
}

// turn is a message.
type turn struct {
	role  string
	bytes int
	text  string // as far as instances are looked for in it
}

// wire is one of the two APIs.
type wire interface {
	api() string
	// parse reads a request; counting is of one that is only to be counted.
	parse(body []byte, counting bool) (*request, *problem)
	// plain is a reply as one piece of JSON, events as a stream of it.
	plain(m *message) any
	events(m *message) []part
	// said is what the beginning of a stream says that the reply takes; nil where
	// only its end says so.
	said(m *message) *model.Usage
	// problem is an error as a body, problemEvent as part of a stream.
	problem(p problem, id string) []byte
	problemEvent(p problem) []byte
	// headers go with every answer.
	headers(h http.Header, id string, s standing)
}

// step is the number of the reply that is asked for, from 1.
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

// opening are the messages before the first reply.
func (r *request) opening() []turn {
	for i, t := range r.turns {
		if t.role == "assistant" {
			return r.turns[:i]
		}
	}
	return r.turns
}

// usage is that of the prompt: four bytes are a token. What stands before the
// last reply was sent by the step before, and comes from the cache.
func (r *request) usage() model.Usage {
	known, marked, all := r.extra, 0, r.extra
	for i, t := range r.turns {
		if t.role == "assistant" {
			known = all
		}
		all += t.bytes
		if i <= r.marked {
			marked = all
		}
	}
	if r.assistants() == 0 {
		known = 0
	}
	u := model.Usage{Prompt: tokens(all), CacheRead: tokens(known)}
	if r.needsMark {
		u.CacheRead = tokens(min(known, marked))
		u.CacheWrite = tokens(marked) - u.CacheRead
	}
	return u
}

// tokens of so many bytes.
func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

// readBody reads a request to its end, within a time and a length.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *problem) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // not every server has one
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	if err == nil {
		_ = control.SetReadDeadline(time.Time{}) // the answer may take its time; what is left of a bad body may not
	}
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return nil, &problem{
			status: http.StatusRequestEntityTooLarge, typ: "invalid_request_error", anthropicType: "request_too_large",
			message: "Request exceeds the maximum size",
		}
	}
	if err != nil {
		return nil, invalid("We could not read the body of your request: it ended early.")
	}
	return body, nil
}

// key is what the client showed, in either of the ways.
func key(r *http.Request) string {
	if k := r.Header.Get("X-Api-Key"); k != "" {
		return k
	}
	k := r.Header.Get("Authorization")
	if scheme, rest, ok := strings.Cut(k, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(rest)
	}
	return k
}

func (s *Server) keyGood(r *http.Request) bool {
	return s.config.CheckKey == nil || s.config.CheckKey(key(r))
}

// decode reads a JSON body, and says what is wrong as providers do.
func decode(body []byte, v any) *problem {
	err := json.Unmarshal(body, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return invalid(fmt.Sprintf("Invalid type for '%s': got %s.", clip(wrong.Field), wrong.Value))
	}
	if err != nil {
		return invalid("We could not parse the JSON body of your request.")
	}
	return nil
}

// texts are the text of a content in either form, a string or a list of parts.
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

// clip bounds what a client wrote before it is kept or said again.
func clip(s string) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	return strings.ToValidUTF8(s, "?")
}

// commandTool picks the tool that commands go to.
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

// tool is what both APIs have in common of a tool.
type tool struct {
	Name       string
	Parameters struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
}
