package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
)

// answers is a server within the process.
type answers func(*http.Request) *http.Response

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// FuzzAnswer takes any bytes for an answer. What comes of them is an error that
// says what is wrong, or a reply that can be kept and be sent back.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(plain), false)
	f.Add([]byte(streamed), true)
	f.Add([]byte(withoutNames(streamed)), true)
	f.Add([]byte(failure("overloaded_error", "x")), false)
	f.Add([]byte("data: "+failure("overloaded_error", "x")+"\n"), true)
	f.Add([]byte(message(`{"type":"tool_use","input":"{"}`, `"tool_use"`)), false)
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		var sent []byte
		server := answers(func(r *http.Request) *http.Response {
			kind := "application/json"
			if stream {
				kind = "text/event-stream"
			}
			var err error
			if sent, err = io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Request: r,
				Body: io.NopCloser(bytes.NewReader(body)),
			}
		})
		m, err := anthropic.New(anthropic.Config{Name: "m", Stream: stream, Tools: bash, HTTPClient: &http.Client{Transport: server}})
		if err != nil {
			t.Fatal(err)
		}
		history := []model.Message{{Role: model.User, Content: "x"}}
		reply, err := m.Query(t.Context(), history)
		if err != nil {
			if _, ok := errors.AsType[*model.Error](err); !ok {
				t.Fatalf("error %v, want a *model.Error", err)
			}
			return
		}
		if reply.Finish == "" || !json.Valid(reply.Raw) || reply.Usage.Prompt < 0 || reply.Usage.Completion < 0 {
			t.Errorf("reply %+v", reply)
		}
		history = append(history, reply.Message)
		for _, c := range reply.Message.Calls {
			history = append(history, model.Message{Role: model.Tool, CallID: c.ID})
		}
		sent = nil
		_, _ = m.Query(t.Context(), append(history, model.Message{Role: model.User, Content: "y"}))
		if !json.Valid(sent) {
			t.Errorf("it cannot be sent back: %+v", reply.Message)
		}
	})
}
