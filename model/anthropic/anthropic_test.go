package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
)

// ask queries a model whose server responds with serve.
func ask(t *testing.T, c anthropic.Config, serve http.HandlerFunc) (model.Reply, error) {
	t.Helper()
	return connect(t, c, serve).Query(t.Context(), []model.Message{{Role: model.User, Content: "x"}})
}

const plain = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-2026","content":[
 {"type":"thinking","thinking":"think <hard>","signature":"c2ln+/="},{"type":"redacted_thinking","data":"ZGF0YQ=="},
 {"type":"text","text":"héllo <b>\n"},{"type":"tool_use","id":"toolu_1","name":"bash","input":{"command":"ls <x>"}},{"type":"tool_use","id":"toolu_2","name":"bash","input":{}}],
 "stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":30,"cache_read_input_tokens":60,
  "cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":25,"output_tokens_details":{"thinking_tokens":8},"service_tier":"standard","new_here":[1]}}`

// streamed is the answer plain as a stream, with the other events that real servers send.
var streamed = strings.Join([]string{
	`event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-2026","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":30,"cache_read_input_tokens":60,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":1,"service_tier":"standard","new_here":[1]}}}`,
	`event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
	`event: ping
data: {"type": "ping"}`,
	`: a comment`,
	`event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"think"}}`,
	`event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" <hard>"}}`,
	`event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln+/="}}`,
	`event: content_block_stop
data: {"type":"content_block_stop","index":0}`,
	`event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZGF0YQ=="}}`,
	`event: content_block_stop
data: {"type":"content_block_stop","index":1}`,
	`event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
	`event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"héllo"}}`,
	`event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":" <b>\n"}}`,
	`event: content_block_stop
data: {"type":"content_block_stop","index":2}`,
	`event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"bash","input":{}}}`,
	`event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}`,
	`event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}`,
	`event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"ls <x>\"}"}}`,
	`event: content_block_stop
data: {"type":"content_block_stop","index":3}`,
	`event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"bash","input":{}}}`,
	`event: content_block_stop
data: {"type":"content_block_stop","index":4}`,
	`event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":25,"output_tokens_details":{"thinking_tokens":8}}}`,
	`event: message_stop
data: {"type":"message_stop"}`,
	``,
}, "\n\n")

// withoutNames returns a stream without the names of its events.
func withoutNames(stream string) string {
	var out []string
	for line := range strings.Lines(stream) {
		if !strings.HasPrefix(line, "event:") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestPlainAndStreamedAreEqual(t *testing.T) {
	want := model.Reply{
		Message: model.Message{
			Role: model.Assistant, Content: "héllo <b>\n", Reasoning: "think <hard>",
			ToolCalls: []model.ToolCall{{ID: "toolu_1", Name: "bash", Arguments: `{"command":"ls <x>"}`}, {ID: "toolu_2", Name: "bash", Arguments: "{}"}},
		},
		FinishReason: model.FinishToolCalls, Model: "claude-2026", Tries: 1,
		Usage: model.Usage{Prompt: 100, Completion: 25, CacheRead: 60, CacheWrite: 30, CacheWriteHour: 20, Reasoning: 8, Unpriced: 1},
	}
	var raw map[string]any
	require.NoError(t, json.Unmarshal([]byte(plain), &raw))
	providerData := map[string]any{"anthropic": raw["content"]}
	for name, test := range map[string]struct {
		stream     bool
		kind, body string
	}{
		"plain":                       {false, "application/json", plain},
		"stream":                      {true, "text/event-stream; charset=utf-8", streamed},
		"server that does not stream": {true, "application/json", plain},
		"server that always streams":  {false, "text/event-stream", streamed},
		"carriage returns":            {true, "text/event-stream", strings.ReplaceAll(streamed, "\n", "\r\n")},
		"names lost":                  {true, "text/event-stream", withoutNames(streamed)},
		"a connection left open":      {true, "text/event-stream", streamed + "data: not read\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, anthropic.Config{Stream: test.stream}, respond(200, test.kind, test.body))
			require.NoError(t, err)
			assert.NoDiff(t, cmp.Diff(want, got, cmpopts.IgnoreFields(model.Reply{}, "Raw", "Message.ProviderData")))
			for _, part := range []struct {
				what string
				want map[string]any
				got  json.RawMessage
			}{{"raw response", raw, got.Raw}, {"provider data", providerData, got.Message.ProviderData}} {
				var decoded map[string]any
				if err := json.Unmarshal(part.got, &decoded); err != nil {
					t.Fatalf("%s: %v", part.what, err)
				}
				assert.Equal(t, part.want, decoded, "%s: ", part.what)
			}
		})
	}
}

// Thinking is sent back unchanged, at its place in the conversation.
func TestThinkingIsSentBack(t *testing.T) {
	for _, stream := range []bool{false, true} {
		var second []byte
		m := connect(t, anthropic.Config{Stream: stream, Tools: bash}, func(w http.ResponseWriter, r *http.Request) {
			second, _ = io.ReadAll(r.Body)
			if stream {
				respond(200, "text/event-stream", streamed)(w, r)
				return
			}
			respond(200, "application/json", plain)(w, r)
		})
		history := []model.Message{{Role: model.User, Content: "x"}}
		reply, err := m.Query(t.Context(), history)
		require.NoError(t, err)
		// The journal stores the message as JSON.
		b, err := json.Marshal(reply.Message)
		require.NoError(t, err)
		var restored model.Message
		require.NoError(t, json.Unmarshal(b, &restored))
		history = append(history, restored, model.Message{Role: model.Tool, ToolCallID: "toolu_1", Content: "1"}, model.Message{Role: model.Tool, ToolCallID: "toolu_2", Content: "2"})
		_, err = m.Query(t.Context(), history)
		require.NoError(t, err)
		var request struct{ Messages []struct{ Content any } }
		var answer struct{ Content any }
		require.NoError(t, errors.Join(json.Unmarshal(second, &request), json.Unmarshal([]byte(plain), &answer)))
		assert.Equal(t, answer.Content, request.Messages[1].Content, "stream %t: ", stream)
	}
}

// message is an answer with content blocks.
func message(blocks, stop string) string {
	return fmt.Sprintf(`{"type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%s,"usage":{"input_tokens":3,"output_tokens":2}}`, blocks, stop)
}

func TestAnswers(t *testing.T) {
	const text = `{"type":"text","text":"a"}`
	tests := map[string]struct {
		body   string
		finish model.FinishReason
		want   model.Message
	}{
		"stop":            {message(text, `"end_turn"`), model.FinishStop, model.Message{Content: "a"}},
		"stop sequence":   {message(text, `"stop_sequence"`), model.FinishStop, model.Message{Content: "a"}},
		"length":          {message(text, `"max_tokens"`), model.FinishLength, model.Message{Content: "a"}},
		"pause":           {message(text, `"pause_turn"`), "pause_turn", model.Message{Content: "a"}},
		"unknown reason":  {message(text, `"tired"`), "tired", model.Message{Content: "a"}},
		"nothing at all":  {message("", `"end_turn"`), model.FinishStop, model.Message{}},
		"two text blocks": {message(text+","+text, `"end_turn"`), model.FinishStop, model.Message{Content: "aa"}},
		"blank text":      {message(`{"type":"redacted_thinking","data":"x"},{"type":"text","text":"\n\n"}`, `"end_turn"`), model.FinishStop, model.Message{Content: "\n\n", ProviderData: json.RawMessage(`{"anthropic":[{"type":"redacted_thinking","data":"x"}]}`)}},
		"text after a call": {
			message(`{"type":"tool_use","id":"t","name":"n","input":{}},`+text, `"tool_use"`), model.FinishToolCalls,
			model.Message{Content: "a", ToolCalls: []model.ToolCall{{ID: "t", Name: "n", Arguments: "{}"}}, ProviderData: json.RawMessage(`{"anthropic":[{"type":"tool_use","id":"t","name":"n","input":{}},{"type":"text","text":"a"}]}`)},
		},
		"something between": {
			message(text+`,{"type":"new_thing","x":[1]},`+text, `"end_turn"`), model.FinishStop,
			model.Message{Content: "a\n\na", ProviderData: json.RawMessage(`{"anthropic":[{"type":"text","text":"a"},{"type":"new_thing","x":[1]},{"type":"text","text":"a"}]}`)},
		},
		"thoughts": {
			message(`{"type":"thinking","thinking":"t","signature":"s"},{"type":"thinking","thinking":"u","signature":"v"}`, `"end_turn"`), model.FinishStop,
			model.Message{Reasoning: "t\n\nu", ProviderData: json.RawMessage(`{"anthropic":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"thinking","thinking":"u","signature":"v"}]}`)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, anthropic.Config{}, respond(200, "application/json", test.body))
			require.NoError(t, err)
			test.want.Role = model.Assistant
			if diff := cmp.Diff(test.want, got.Message); diff != "" || got.FinishReason != test.finish {
				t.Errorf("finish %q, %s", got.FinishReason, diff)
			}
		})
	}
}

// Invalid arguments of a call are passed on as the model wrote them.
func TestInvalidArguments(t *testing.T) {
	body := strings.Replace(streamed, `"\"ls <x>\"}"`, `"\"ls "`, 1)
	for _, test := range []struct{ name, body string }{
		{"as it is", body},
		{"never ended", strings.Replace(body, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":3}\n\n", "", 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ask(t, anthropic.Config{Stream: true}, respond(200, "text/event-stream", test.body))
			require.NoError(t, err)
			if len(got.Message.ToolCalls) != 2 || got.Message.ToolCalls[0].Arguments != `{"command":"ls ` {
				t.Errorf("calls %+v", got.Message.ToolCalls)
			}
			if !strings.Contains(string(got.Message.ProviderData), `"input":{"INVALID_JSON":"{\"command\":\"ls "}`) || !json.Valid(got.Raw) {
				t.Errorf("kept %s, raw %s", got.Message.ProviderData, got.Raw)
			}
		})
	}
}

// Servers of this API number the blocks of a stream in other ways, and give fields of
// other types.
func TestOtherServers(t *testing.T) {
	want, err := ask(t, anthropic.Config{Stream: true}, respond(200, "text/event-stream", streamed))
	require.NoError(t, err)
	index := regexp.MustCompile(`"index":(\d)`)
	for name, body := range map[string]string{
		"from 7 on":   index.ReplaceAllString(streamed, `"index":7$1`),
		"one for all": index.ReplaceAllString(streamed, `"index":0`),
		"none":        index.ReplaceAllString(streamed, `"index":null`),
		"texts":       index.ReplaceAllString(streamed, `"index":"$1"`),
		"no errors":   strings.ReplaceAll(streamed, `,"index":`, `,"error":null,"index":`),
		"other types": strings.Replace(streamed, `"model":"`, `"stop_details":7,"container":[1],"model":"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, anthropic.Config{Stream: true}, respond(200, "text/event-stream", body))
			require.NoError(t, err)
			assert.Equal(t, want.Message, got.Message, "got.Message")
		})
	}
	for name, usage := range map[string]string{"with a fraction": `{"input_tokens":50.0,"output_tokens":2.0}`, "in strings": `{"input_tokens":"50","output_tokens":"2"}`} {
		body := `{"id":1,"model":[],"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":` + usage + `}`
		if got, err := ask(t, anthropic.Config{}, respond(200, "application/json", body)); err != nil || got.Usage.Prompt != 50 {
			t.Errorf("counts %s: %d: %v", name, got.Usage.Prompt, err)
		}
	}
}

func TestUsageAndCost(t *testing.T) {
	price := model.Price{Input: 3, Cached: 0.3, CacheWrite: 3.75, CacheWriteHour: 6, Output: 15}
	usage := func(s string) string {
		return `{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":` + s + `}`
	}
	tests := map[string]struct {
		price model.Price
		body  string
		usage model.Usage
		cost  float64
	}{
		"all kinds": { // 10 x 3 + 60 x 0.3 + 10 x 3.75 + 20 x 6 + 25 x 15 = 580.5
			price, plain, model.Usage{Prompt: 100, Completion: 25, CacheRead: 60, CacheWrite: 30, CacheWriteHour: 20, Reasoning: 8}, 580.5e-6,
		},
		"no hour count": { // 10 x 3 + 20 x 3.75 + 1 x 15 = 120
			price, usage(`{"input_tokens":10,"cache_creation_input_tokens":20,"output_tokens":1}`), model.Usage{Prompt: 30, CacheWrite: 20, Completion: 1}, 120e-6,
		},
		"free":    {model.Price{Free: true}, usage(`{"input_tokens":10,"output_tokens":1}`), model.Usage{Prompt: 10, Completion: 1}, 0},
		"unknown": {model.Price{}, usage(`{"input_tokens":10,"output_tokens":1}`), model.Usage{Prompt: 10, Completion: 1, Unpriced: 1}, 0},
		"too many": {
			model.Price{Free: true},
			usage(`{"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807,"output_tokens":1e30}`),
			model.Usage{Prompt: 1 << 41, CacheRead: 1 << 40, Completion: 1 << 40},
			0,
		},
		"no usage":       {price, `{"content":[],"stop_reason":"end_turn"}`, model.Usage{Unpriced: 1}, 0},
		"no usage, free": {model.Price{Free: true}, `{"content":[],"stop_reason":"end_turn"}`, model.Usage{}, 0},
		"absurd": {
			price, usage(`{"input_tokens":-9223372036854775808,"cache_creation":{"ephemeral_1h_input_tokens":7},"cache_read_input_tokens":-1,"output_tokens":-1}`), model.Usage{Unpriced: 1}, 0,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, anthropic.Config{Price: test.price}, respond(200, "application/json", test.body))
			require.NoError(t, err)
			assert.NoDiff(t, cmp.Diff(test.usage, got.Usage)+cmp.Diff(test.cost, float64(got.Cost), cmpopts.EquateApprox(0, 1e-12)))
		})
	}
}

// A withheld answer has a cost.
func TestContentFilterUsage(t *testing.T) {
	for _, stop := range []string{`"refusal"`, `"model_context_window_exceeded"`} {
		got, err := ask(t, anthropic.Config{}, respond(200, "application/json", message(`{"type":"text","text":"a"}`, stop)))
		if err == nil || got.Usage.Prompt != 3 || got.Usage.Completion != 2 || got.Tries != 1 {
			t.Errorf("%s: usage %+v, %v", stop, got.Usage, err)
		}
	}
}

// Responses and errors report the requests per minute.
func TestLimits(t *testing.T) {
	for _, status := range []int{200, 429} {
		got, _ := ask(t, anthropic.Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("anthropic-ratelimit-requests-limit", "50")
			w.Header().Set("anthropic-ratelimit-tokens-limit", "40000")
			respond(status, "application/json", plain)(w, r)
		})
		assert.Equal(t, (model.RateLimits{RequestsPerMinute: 50}), got.RateLimits, "%d", status)
	}
}

// FuzzAnswer parses any bytes as a response. The result is an error, or a reply that
// can be stored and sent back.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(plain), false)
	f.Add([]byte(streamed), true)
	f.Add([]byte(withoutNames(streamed)), true)
	f.Add([]byte(failure("overloaded_error", "x")), false)
	f.Add([]byte("data: "+failure("overloaded_error", "x")+"\n"), true)
	f.Add([]byte(message(`{"type":"tool_use","input":"{"}`, `"tool_use"`)), false)
	m, err := anthropic.New(anthropic.Config{Name: "m", Tools: bash})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		raw, err := json.RawMessage(body), error(nil)
		if stream {
			raw, err = anthropic.Receive(bytes.NewReader(body))
		}
		var reply model.Reply
		if err == nil {
			reply, err = anthropic.ParseReply(raw, model.Price{Input: 1})
		}
		if err != nil {
			if _, ok := errors.AsType[*model.Error](err); !ok {
				t.Fatalf("error %v, want a *model.Error", err)
			}
			return
		}
		if reply.FinishReason == "" || !json.Valid(reply.Raw) || reply.Usage.Prompt < 0 || reply.Usage.Completion < 0 || reply.Cost < 0 {
			t.Errorf("reply %+v", reply)
		}
		history := []model.Message{{Role: model.User, Content: "x"}, reply.Message}
		for _, c := range reply.Message.ToolCalls {
			history = append(history, model.Message{Role: model.Tool, ToolCallID: c.ID})
		}
		history = append(history, model.Message{Role: model.User, Content: "y"})
		if _, err := m.Body(history); err != nil {
			t.Errorf("%+v cannot be sent back: %v", reply.Message, err)
		}
	})
}
