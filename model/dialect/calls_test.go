package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/dialect"
)

// TestManyCalls: an answer with too many calls is an error, long before all of them are
// assembled.
func TestManyCalls(t *testing.T) {
	repeat := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, n := range []int{1000, 20_000} {
		for name, tt := range map[string]struct {
			before, after string
			call          string // in a whole answer
			first         string // events of a stream
			event, last   string
		}{
			"chat": {
				`{"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[`, `]}}]}`,
				`{"index":%[1]d,"id":"c%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}`,
				`{"choices":[{"index":0,"delta":{"role":"assistant"}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%[1]d,"id":"c%[1]d","function":{"name":"f","arguments":"{}"}}]}}]}`,
				`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			},
			"responses": {
				`{"output":[`, `]}`, `{"type":"function_call","call_id":"c%d","name":"f","arguments":"{}"}`, "", "", "",
			},
			"messages": {
				`{"type":"message","stop_reason":"tool_use","content":[`, `]}`, `{"type":"tool_use","id":"c%d","name":"f","input":{}}`,
				`{"type":"message_start","message":{}}`,
				`{"type":"content_block_start","index":%[1]d,"content_block":{"type":"tool_use","id":"c%[1]d","name":"f"}}`,
				`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
			},
			"gemini": {
				`{"candidates":[{"finishReason":"STOP","content":{"parts":[`, `]}}]}`, `{"functionCall":{"id":"c%d","name":"f","args":{}}}`, `{}`,
				`{"candidates":[{"content":{"parts":[{"functionCall":{"id":"c%d","name":"f","args":{}}}]}}]}`,
				`{"candidates":[{"finishReason":"STOP"}]}`,
			},
		} {
			d := dialect.ByName(name)
			whole := tt.before + repeat(tt.call, n) + tt.after
			reply, err := d.Reply([]byte(whole), model.Price{})
			check(t, name, n, reply, err)
			sent := 0
			reply, err = d.Stream(func(yield func([]byte, error) bool) {
				if name == "responses" {
					yield([]byte(`{"type":"response.completed","response":`+whole+`}`), nil)
					return
				}
				if !yield([]byte(tt.first), nil) {
					return
				}
				for ; sent < n; sent++ {
					if !yield(fmt.Appendf(nil, tt.event, sent), nil) {
						return
					}
				}
				if yield([]byte(tt.last), nil) && name == "messages" {
					yield([]byte(`{"type":"message_stop"}`), nil)
				}
			}, model.Price{})
			check(t, name+" stream", n, reply, err)
			if sent > 1001 {
				t.Errorf("%s: the stream was read up to call %d", name, sent)
			}
		}
	}
	// A chunk with all calls.
	chunk := `{"choices":[{"index":0,"delta":{"tool_calls":[` + repeat(`{"index":%d,"id":"c","function":{"name":"f"}}`, 200_000) + `]}}]}`
	_, err := dialect.ByName("chat").Stream(func(yield func([]byte, error) bool) { yield([]byte(chunk), nil) }, model.Price{})
	check(t, "chat chunk", 200_000, model.Reply{}, err)
}

func check(t *testing.T, name string, n int, reply model.Reply, err error) {
	t.Helper()
	switch {
	case n <= 1000 && (err != nil || len(reply.Message.ToolCalls) != n):
		t.Errorf("%s: %d calls: %d, error %v", name, n, len(reply.Message.ToolCalls), err)
	case n > 1000 && (err == nil || !strings.Contains(err.Error(), "more than 1000 tool calls")):
		t.Errorf("%s: %d calls: error %v", name, n, err)
	}
}
