package modeltest_test

import (
	"bytes"
	stdcmp "cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/modeltest"
	"github.com/minibench/mini/model/openai"
)

// provider is a file of testdata/providers: the responses of one provider's API, in the forms
// that its documentation and its users show. A new provider is a new file.
type provider struct {
	Provider string
	Source   string // where the forms are described
	API      string // "anthropic" for the model of that package; default is that of openai
	Base     string // path of the base URL that a user sets; default "/v1"
	Cases    []providerCase

	endpoint string // path of the requests
}

// providerCase is one response.
type providerCase struct {
	Name, Source string
	Status       int // default 200
	Headers      map[string]string
	// Body is sent to requests for streamed and for plain answers: a failure looks the same in
	// both, and servers may ignore that a stream is wanted. Events, the text of an event stream,
	// is sent only to requests for streamed answers. A case has one of them.
	Body, Events string
	Want         expectation
}

// expectation is what a user needs of a response. Finish, Usage, Cost, RetryAfter and Text are
// checked if they are set.
type expectation struct {
	Content, Reasoning string
	Calls              []expectedCall
	Finish             model.FinishReason
	Usage              *expectedUsage
	Cost               model.Cost
	SentBack           []string `yaml:"sent_back"` // parts of the next request
	// Status is the kind of failure; empty if the answer is good.
	Status     model.Status
	Retryable  bool
	RetryAfter time.Duration `yaml:"retry_after"`
	Text       string        // part of the error
}

// expectedCall is a call. Its ID is checked if it is set.
type expectedCall struct{ ID, Name, Arguments string }

type expectedUsage struct{ Prompt, Completion, Cached, Written, Reasoning int64 }

// TestProviders queries a server that answers as a provider does.
func TestProviders(t *testing.T) {
	files, err := filepath.Glob("testdata/providers/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no providers: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			p := readProvider(t, file)
			for _, c := range p.Cases {
				for _, stream := range []bool{false, true} {
					if stream || c.Events == "" {
						t.Run(c.Name+", stream "+strconv.FormatBool(stream), func(t *testing.T) { p.test(t, c, stream) })
					}
				}
			}
		})
	}
}

// readProvider reads a provider's file. Unknown fields and cases with the same name are errors.
func readProvider(t *testing.T, file string) provider {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var p provider
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&p); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	p.Base = stdcmp.Or(p.Base, "/v1")
	p.endpoint = p.Base + map[string]string{"": "/chat/completions", "anthropic": "/messages"}[p.API]
	names := map[string]bool{}
	for _, c := range p.Cases {
		if names[c.Name] || (c.Body == "") == (c.Events == "") {
			t.Fatalf("%s: case %q: want a name of its own, and a body or events", file, c.Name)
		}
		names[c.Name] = true
	}
	return p
}

func (p provider) test(t *testing.T, c providerCase, stream bool) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests = append(requests, r.URL.Path+" "+string(body))
		c.serve(w)
	}))
	defer server.Close()
	m := p.connect(t, server.URL, stream)
	defer func() {
		assert.NoError(t, m.Close())
	}()
	var deltas [2]string
	ctx := model.WithDeltas(t.Context(), func(d model.Delta) {
		if d.Restart {
			deltas = [2]string{}
		}
		deltas[0], deltas[1] = deltas[0]+d.Text, deltas[1]+d.Reasoning
	})
	question := model.Message{Role: model.User, Content: "x"}
	reply, err := m.Query(ctx, []model.Message{question})
	if len(requests) != 1 || !strings.HasPrefix(requests[0], p.endpoint+" ") {
		t.Fatalf("requests %q, want one to %s", requests, p.endpoint)
	}
	if c.Want.Status != "" {
		c.checkError(t, err)
		return
	}
	require.NoError(t, err)
	c.Want.checkReply(t, reply)
	if got := [2]string{reply.Message.Content, reply.Message.Reasoning}; c.Events != "" && got != deltas {
		t.Errorf("deltas %q of reply %q", deltas, got)
	}
	if len(c.Want.SentBack) == 0 {
		return
	}
	conversation := []model.Message{question, reply.Message}
	for _, call := range reply.Message.ToolCalls {
		conversation = append(conversation, model.Message{Role: model.Tool, ToolCallID: call.ID, Content: "y"})
	}
	_, err = m.Query(t.Context(), append(conversation, question))
	require.NoError(t, err)
	for _, part := range c.Want.SentBack {
		assert.Contains(t, requests[1], part, "what is sent back")
	}
}

// serve sends the response. An event stream ends with the blank line that ends its last event.
func (c providerCase) serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if c.Events != "" {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	for name, value := range c.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(max(c.Status, http.StatusOK))
	_, _ = io.WriteString(w, strings.TrimRight(c.Body+c.Events, "\n")+"\n\n")
}

// connect returns the model that a user of the provider has.
func (p provider) connect(t *testing.T, server string, stream bool) modeltest.Model {
	t.Helper()
	tools := []model.ToolDefinition{{Name: "bash", Description: "Run a command.", Parameters: json.RawMessage(`{"type":"object"}`)}}
	var m modeltest.Model
	var err error
	switch p.API {
	case "anthropic":
		m, err = anthropic.New(anthropic.Config{Name: "m", BaseURL: server + p.Base, APIKey: "k-0123456789", Stream: stream, Tools: tools})
	case "":
		m, err = openai.New(openai.Config{Name: "m", BaseURL: server + p.Base, APIKey: "k-0123456789", Stream: stream, Tools: tools})
	default:
		t.Fatalf("no model for the API %q", p.API)
	}
	require.NoError(t, err)
	return m
}

func (c providerCase) checkError(t *testing.T, err error) {
	t.Helper()
	w := c.Want
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Fatalf("error %v, want %s", err, w.Status)
	}
	if e.Status != w.Status || e.Retryable != w.Retryable {
		t.Errorf("%s, retryable %t; want %s, %t: %v", e.Status, e.Retryable, w.Status, w.Retryable, err)
	}
	if w.RetryAfter > 0 && e.RetryAfter != w.RetryAfter {
		t.Errorf("retry after %v, want %v", e.RetryAfter, w.RetryAfter)
	}
	if !strings.Contains(err.Error(), w.Text) || strings.Contains(err.Error(), "<html") {
		t.Errorf("error %q, want %q in it, and no HTML", err, w.Text)
	}
	if c.Status > 0 && e.HTTPStatus != c.Status || c.Status == http.StatusNotFound && e.Hint == "" {
		t.Errorf("HTTP status %d, want %d; hint %q", e.HTTPStatus, c.Status, e.Hint)
	}
}

func (w expectation) checkReply(t *testing.T, r model.Reply) {
	t.Helper()
	got := expectation{Content: r.Message.Content, Reasoning: r.Message.Reasoning}
	want := expectation{Content: w.Content, Reasoning: w.Reasoning}
	for i, call := range r.Message.ToolCalls {
		c := expectedCall{Name: call.Name, Arguments: compactJSON(call.Arguments)}
		if i < len(w.Calls) && w.Calls[i].ID != "" {
			c.ID = call.ID
		}
		got.Calls = append(got.Calls, c)
	}
	for _, c := range w.Calls {
		c.Arguments = compactJSON(c.Arguments)
		want.Calls = append(want.Calls, c)
	}
	if w.Finish != "" {
		got.Finish, want.Finish = r.FinishReason, w.Finish
	}
	if u := r.Usage; w.Usage != nil {
		got.Usage, want.Usage = &expectedUsage{u.Prompt, u.Completion, u.CacheRead, u.CacheWrite, u.Reasoning}, w.Usage
	}
	if w.Cost != 0 {
		got.Cost, want.Cost = r.Cost, w.Cost
	}
	assert.Equal(t, want, got, "reply")
}

// compactJSON returns JSON without white space, and other text unchanged.
func compactJSON(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}
