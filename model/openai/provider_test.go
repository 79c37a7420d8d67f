package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/modeltest"
	"github.com/minibench/mini/model/openai"
)

// TestProvider runs the conformance suite.
func TestProvider(t *testing.T) {
	const js, sse = "application/json", "text/event-stream"
	modeltest.Run(t, modeltest.Provider{
		New: func(s modeltest.Settings) (modeltest.Model, error) {
			return openai.New(openai.Config{
				Name: "m", BaseURL: s.BaseURL + "/v1", APIKey: s.Key, Stream: s.Stream, Timeout: s.Timeout, HTTPClient: s.Client,
			})
		},
		Plain: plain, Streamed: streamed, FirstEvent: "data: {\"choices\":[]}\n\n",
		StreamedPieces: func(pieces ...string) string {
			var b strings.Builder
			for _, p := range pieces {
				text, _ := json.Marshal(p)
				fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", text)
			}
			b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":100}}\n\ndata: [DONE]\n\n")
			return b.String()
		},
		Faults: map[string]modeltest.Fault{
			"error in good": {Serve: modeltest.OKHandler(js, `{"error":{"message":"upstream","code":502}}`)},
			"busy in good":  {Serve: modeltest.OKHandler(js, `{"error":{"message":"slow down","code":429}}`)},
			"no choices":    {Serve: modeltest.OKHandler(js, `{"choices":[]}`)},
			"no finish":     {Serve: modeltest.OKHandler(js, `{"choices":[{"message":{"content":"x"}}]}`)},
			"no credit":     {Serve: modeltest.ErrorHandler(429, `{"error":{"code":"insufficient_quota"}}`), Status: model.AuthenticationError},
			"too long":      {Serve: modeltest.ErrorHandler(400, `{"error":{"code":"context_length_exceeded"}}`), Status: model.ContextWindowExceeded},
			"refused":       {Serve: modeltest.ErrorHandler(400, `{"error":{"code":"content_filter"}}`), Status: model.ContentRefused},
		},
		Echoes: map[string]modeltest.Echo{
			"refusal": {Status: 401, Kind: js, Body: `{"error":{"message":"KEY"}}`},
			"text":    {Status: 500, Kind: "text/plain", Body: `not good: "KEY"`},
			"error":   {Status: 200, Kind: js, Body: `{"error":{"message":"KEY"}}`},
			"answer":  {Status: 200, Kind: js, Body: `{"echo":"KEY","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`},
			"details": {Status: 200, Kind: js, Body: `{"choices":[{"message":{"content":"x","reasoning_details":[{"data":"KEY"}]},"finish_reason":"stop"}]}`},
			"event":   {Stream: true, Status: 200, Kind: sse, Body: "data: {\"error\":{\"message\":\"KEY\"}}\n\n"},
			"stream":  {Stream: true, Status: 200, Kind: sse, Body: "data: {\"echo\":\"KEY\",\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n"},
		},
	})
}
