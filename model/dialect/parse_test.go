package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/model/dialect"
)

// requests have a part of a message of the user, and a field more than that.
var requests = map[string]string{
	"chat":      `{"model":"m","messages":[{"role":"user","content":[%s]}]%s}`,
	"responses": `{"model":"m","input":[{"role":"user","content":[%s]}]%s}`,
	"messages":  `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[%s]}]%s}`,
	"gemini":    `{"contents":[{"role":"user","parts":[%s]}]%s}`,
}

func parse(name, body string) (*dialect.Body, []string, error) {
	return dialect.ParseRequest(dialect.ByName(name), []byte(body), false)
}

// TestAddresses refuses parts that make a provider load a file, wherever they are.
func TestAddresses(t *testing.T) {
	for _, part := range []string{
		`{"type":"image_url","image_url":{"url":"https://example.org/x"}}`,
		`{"type":"image_url","image_url":"https://example.org/x"}`,
		`{"type":"image_url","image_url":["https://example.org/x"]}`,
		`{"type":"image_url","image_url":{"url":{"text":"https://example.org/x"}}}`,
		`{"type":"image_url","image_url":{"content":"https://example.org/x"}}`,
		`{"type":"text","text":"look","Image_URL":{"URL":"HTTPS://example.org/x"}}`,
		`{"type":"no_such_type","imageUrl":{"url":"example.org/x"}}`,
		`{"type":"image_url","image_url":{"url":"//example.org/x"}}`,
		`{"type":"image_url","image_url":{"url":"h\nttps://example.org/x"}}`,
		`{"type":"image_url","image_url":{"\u0075rl":"\u0068ttps://example.org/x"}}`,
		`{"type":"video_url","video_url":{"url":"https://example.org/x"}}`,
		`{"type":"video","video":["https://example.org/1","https://example.org/2"]}`,
		`{"image":"https://example.org/x"}`,
		`{"type":"input_audio","input_audio":{"data":" https://example.org/x","format":"wav"}}`,
		`{"type":"input_audio","input_audio":{"data":"\u0000\tht\ttps:\\\\example.org/x","format":"wav"}}`,
		`{"type":"file","file":{"file_id":"file-1"}}`,
		`{"type":"file","file":{"filename":"x","file_data":"https://example.org/x"}}`,
		`{"type":"input_file","file_url":"https://example.org/x"}`,
		`{"type":"input_image","file_id":"file-1"}`,
		`{"type":"input_image","image_url":"ms://file-1"}`,
		`{"type":"image","source":{"type":"url","url":"https://example.org/x"}}`,
		`{"type":"image","source":"s3://bucket/x"}`,
		`{"type":"image","source":{"type":"base64","data":"https://example.org/x"}}`,
		`{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","url":"https://example.org/x"}}]}}`,
		`{"type":"document","source":{"type":"file","file_id":"file_1"}}`,
		`{"type":"container_upload","file_id":"file_1"}`,
		`{"type":"tool_result","tool_use_id":"1","content":[{"type":"image","source":{"type":"url","url":"https://example.org/x"}}]}`,
		`{"type":"tool_result","tool_use_id":"1","input":{"url":"https://example.org/x"}}`,
		`{"type":"function_call_output","call_id":"1","output":[{"type":"input_image","image_url":"https://example.org/x"}]}`,
		`{"type":"document_url","document_url":"https://example.org/x"}`,
		`{"text":"look","fileData":{"fileUri":"https://example.org/x","mimeType":"image/png"}}`,
		`{"file_data":{"file_uri":"gs://bucket/x"}}`,
		`{"fileData":{"fileUri":"files/abc"}}`,
		`{"functionResponse":{"name":"f","response":{},"parts":[{"fileData":{"fileUri":"https://example.org/x"}}]}}`,
		`{"toolCall":{"toolType":"URL_CONTEXT","args":{"urls":["https://example.org/x"]}}}`,
		`{"Text":"https://example.org/x"}`,
		`{"a":` + strings.Repeat(`[{"a":`, 100) + `{"url":"https://example.org/x"}` + strings.Repeat(`}]`, 100) + `}`,
	} {
		for name, request := range requests {
			_, _, err := parse(name, fmt.Sprintf(request, part, ""))
			assert.ErrorContains(t, err, "an address on the network", "%s: %s", name, part)
		}
	}
}

// TestTexts accepts addresses in texts and in what only tools read.
func TestTexts(t *testing.T) {
	for name, parts := range map[string][]string{
		"chat": {
			`{"type":"text","text":"https://example.org/x"}`, `"https://example.org/x"`,
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"high"}}`,
			`{"type":"input_audio","input_audio":{"data":"//uQxAAA","format":"mp3"}}`,
		},
		"responses": {`{"type":"input_image","image_url":"DATA:image/png;base64,AAAA"}`},
		"messages": {
			`{"type":"tool_use","id":"1","name":"fetch","input":{"url":"https://example.org/x","file_id":"1","URL":1}}`,
			`{"type":"tool_result","tool_use_id":"1","content":"https://example.org/x"}`,
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"https://example.org/x"},"title":"https://example.org/x"}`,
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`,
		},
		"gemini": {
			`{"functionCall":{"name":"fetch","args":{"url":"https://example.org/x"}}}`,
			`{"functionResponse":{"name":"fetch","response":{"output":"https://example.org/x","url":"https://example.org/y"}}}`,
			`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`,
		},
	} {
		for _, part := range parts {
			if _, _, err := parse(name, fmt.Sprintf(requests[name], part, "")); err != nil {
				t.Errorf("%s: %s: %v", name, part, err)
			}
		}
	}
	for name, fields := range map[string][]string{
		"chat": {
			`"tools":[{"type":"function","function":{"name":"fetch","description":"https://example.org","parameters":{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"url":{"type":"string","default":"https://example.org"},"id":{"$ref":"#/$defs/id"},"ID":{}}}}}]`,
			`"stop":["https://"],"metadata":{"profile_id":"p"}`, `"messages":[{"role":"assistant","tool_calls":[{"id":"functions.bash:0","type":"function","function":{"name":"bash","arguments":"https://example.org"}}]}]`,
		},
		"responses": {
			`"input":[{"type":"local_shell_call","call_id":"1","action":{"type":"exec","command":["curl","https://example.org"],"env":{"PROXY_URL":"http://127.0.0.1"}}},{"type":"custom_tool_call","call_id":"2","name":"x","input":"https://example.org"},{"type":"function_call_output","call_id":"2","output":"https://example.org"}]`,
			`"client_metadata":{"x-codex-turn-metadata":"{\"remote\":\"https://example.org\"}"}`, `"input":"https://example.org"`,
			`"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"f","tools":[{"type":"custom","name":"exec"}]}]}]`,
			`"tools":[{"type":"shell","environment":{"type":"local"}},{"type":"mcp","server_url":"https://example.org"}]`,
		},
		"messages": {`"system":[{"type":"text","text":"https://example.org","cache_control":{"type":"ephemeral"}}]`},
		"gemini":   {`"tools":[{"functionDeclarations":[{"name":"f"}],"urlContext":{"url":"https://example.org"}}]`},
	} {
		for _, f := range fields {
			if _, _, err := parse(name, "{"+f+"}"); err != nil {
				t.Errorf("%s: %s: %v", name, f, err)
			}
		}
	}
}

// TestKeys refuses what two readers of JSON may read in two ways, and parts that make the
// provider act.
func TestKeys(t *testing.T) {
	for name, bodies := range map[string]map[string]string{
		"chat": {
			`{"messages":[],"messages":[]}`:                                     "the key messages twice",
			`{"messages":[],"m\u0065ssages":[]}`:                                "the key messages twice",
			`{"messages":[],"Messages":[]}`:                                     "Messages as messages",
			`{"Messages":[]}`:                                                   "Messages as messages",
			`{"meſſages":[]}`:                                                   "as messages",
			`{"messages":[{"role":"user","Role":"system"}]}`:                    "messages[0]: keys of an object that differ only in case: role and Role",
			`{"messages":[{"role":"user","a":{"\u212a":1,"k":2}}]}`:             "differ only in case",
			`{"Foo":1,"foo":2}`:                                                 "keys of an object that differ only in case: Foo and foo",
			`{"plugins":{"a":1,"a":2}}`:                                         "the key a twice",
			`{"messages":[{"tool_calls":[{"arguments":{"a":{"b":1,"b":2}}}]}]}`: "the key b twice",
			`{"tools":{"0":{"type":"web_search"}}}`:                             "tools is not a list",
			`{"Tools":[{"type":"web_search"}]}`:                                 "Tools as tools",
			`{"tools":[{"type":"function","function":{"parameters":{"$ref":"https://example.org/schema"}}}]}`:               "an address",
			`{"tools":[{"type":"function","function":{"parameters":{"$id":"https://example.org/","$ref":"schema.json"}}}]}`: "an address",
			`{"metadata":{"callback_host":"https://example.org"}}`:                                                          "metadata.callback_host: an address",
			"{\"messages\":[{\"image_\xc1\xb5rl\":\"x\"}]}":                                                                 "not UTF-8",
			`{"messages":[` + strings.Repeat(`{},`, 10_000) + `{}]}`:                                                        "a list of more than 10000",
			`{"plugins":[` + strings.Repeat(`1,`, 500_000) + `1]}`:                                                          "more than 500000 values",
			`{"plugins":` + strings.Repeat(`[`, 100_000):                                                                    "more than 500 levels",
			`{"messages":[]`:    "unexpected EOF",
			`{"messages":[]}{}`: "data after",
		},
		"responses": {
			`{"previous_response_id":"resp_1"}`:                                                 "previous_response_id: a part of the conversation",
			`{"conversation":{"id":"conv_1"}}`:                                                  "conversation: a part",
			`{"prompt":{"id":"p","variables":{"x":{"type":"input_image"}}}}`:                    "prompt: a part",
			`{"input":[{"type":"item_reference","id":"msg_1"}]}`:                                "a part of the conversation",
			`{"input":[{"id":"msg_1"}]}`:                                                        "input[0]: a part of the conversation",
			`{"input":[{"type":"mcp_approval_response","approve":true}]}`:                       "a tool that runs at the provider",
			`{"input":[{"Type":"code_interpreter_call","code":"x"}]}`:                           "a tool that runs at the provider",
			`{"input":[{"type":"additional_tools","tools":[{"type":"web_search"}]}]}`:           "input[0].tools[0]: a tool",
			`{"tools":[{"type":"namespace","tools":[{"type":"mcp"}]}]}`:                         "tools[0].tools[0]: a tool",
			`{"tools":[{"type":"namespace","tools":{"type":"web_search"}}]}`:                    "tools[0].tools: a tool",
			`{"input":[{"type":"additional_tools","tools":{"type":"mcp"}}]}`:                    "input[0].tools: a tool",
			`{"tools":[` + strings.Repeat(`{"tools":[`, 200) + strings.Repeat(`]}`, 200) + `]}`: "more than 5 levels of tools",
		},
		"messages": {
			`{"messages":[{"role":"assistant","content":[{"type":"server_tool_use","name":"web_fetch"}]}]}`:     "a tool that runs at the provider",
			`{"messages":[{"role":"user","content":[{"type":"image","input":{"url":"https://example.org"}}]}]}`: "content[0].input.url: an address",
		},
		"gemini": {
			`{"cachedContent":"cachedContents/1"}`:               "cachedContent: a part",
			`{"tools":{"googleSearch":{}}}`:                      "tools is not a list",
			`{"contents":[{"parts":[{"text":"a","Text":"b"}]}]}`: "text and Text",
		},
	} {
		for body, want := range bodies {
			_, _, err := parse(name, body)
			assert.ErrorContains(t, err, want, "%s: %.200s", name, body)
		}
	}
}

// TestFields drops the fields that a dialect does not need, and keeps the bytes of others.
func TestFields(t *testing.T) {
	for _, tt := range []struct{ dialect, body, kept, dropped string }{
		{"chat", `{"model":"m", "seed":1.0 , "plugins":[{"id":"web","url":"https://example.org"}],"models":["a"],"search_parameters":{},"web_search_options":{},"route":null,"store":true}`, `{"model":"m","seed":1.0,"store":false}`, "plugins models search_parameters web_search_options store"},
		{"responses", `{"background":true,"store":false,"include":["reasoning.encrypted_content"],"previous_response_id":null}`, `{"store":false,"include":["reasoning.encrypted_content"]}`, "background"},
		{"messages", `{"mcp_servers":[{"type":"url","url":"https://example.org"}],"container":{"skills":[]},"context_management":{"edits":[]},"betas":[]}`, `{"context_management":{"edits":[]}}`, "mcp_servers container betas"},
		{"gemini", `{"generateContentRequest":{"tools":[{"urlContext":{}}]},"contents":[]}`, `{"contents":[]}`, "generateContentRequest"},
	} {
		b, dropped, err := parse(tt.dialect, tt.body)
		if err != nil || string(b.Bytes()) != tt.kept || strings.Join(dropped, " ") != tt.dropped {
			t.Errorf("%s: %v, dropped %q, error %v", tt.dialect, b, dropped, err)
		}
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `"field%d":1,`, i)
	}
	if _, dropped, err := parse("chat", "{"+many.String()+`"model":"m"}`); err != nil || len(dropped) != 20 {
		t.Errorf("%d dropped, error %v", len(dropped), err)
	}
	body := `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://example.org"}}]}],"web_search_options":{}}`
	if b, dropped, err := dialect.ParseRequest(dialect.ByName("chat"), []byte(body), true); err != nil || string(b.Bytes()) != body || dropped != nil {
		t.Errorf("with the network: %s, dropped %q, error %v", b.Bytes(), dropped, err)
	}
}

// TestAgents has the fields of the requests of the agents in configs/agents, as their
// sources and documentation name them: all are kept.
func TestAgents(t *testing.T) {
	for agent, tt := range map[string]struct{ dialect, fields string }{
		"aider":          {"chat", "model messages stream temperature"},
		"claude-code":    {"messages", "model messages system tools tool_choice metadata max_tokens thinking temperature context_management output_config speed stream stop_sequences top_k top_p service_tier cache_control output_format"},
		"codex":          {"responses", "model instructions input tools tool_choice parallel_tool_calls reasoning store stream include service_tier prompt_cache_key text client_metadata"},
		"gemini-cli":     {"gemini", "contents systemInstruction tools toolConfig generationConfig safetySettings"},
		"goose":          {"chat", "model messages stream stream_options tools temperature max_tokens max_completion_tokens reasoning_effort"},
		"mini-swe-agent": {"chat", "model messages tools tool_choice parallel_tool_calls temperature max_tokens"},
		"opencode":       {"chat", "model messages stream stream_options tools tool_choice temperature top_p max_tokens reasoning_effort seed stop user response_format"},
		"openhands":      {"chat", "model messages tools temperature top_p max_completion_tokens seed reasoning_effort metadata stop"},
		"qwen-code":      {"chat", "model messages stream stream_options tools temperature top_p top_k max_tokens presence_penalty repetition_penalty frequency_penalty metadata vl_high_resolution_images enable_thinking thinking_budget preserve_thinking reasoning"},
	} {
		fields := strings.Fields(tt.fields)
		body := `{"` + strings.Join(fields, `":false,"`) + `":false}`
		body = strings.Replace(body, `"tools":false`, `"tools":[]`, 1)
		if b, dropped, err := parse(tt.dialect, body); err != nil || dropped != nil || string(b.Bytes()) != body {
			t.Errorf("%s: dropped %q, error %v", agent, dropped, err)
		}
	}
}
