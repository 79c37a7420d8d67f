package transport

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
)

// Errors of full contexts in the words of many servers. prompt and window are the numbers
// that can be read.
func TestContextWindowExceeded(t *testing.T) {
	tests := map[string]struct {
		status         int
		detail         ErrorDetail
		prompt, window int64
	}{
		"a code":                   {400, ErrorDetail{Code: "context_length_exceeded", Message: "no"}, 0, 0},
		"a type beside a number":   {400, ErrorDetail{Code: "400", Type: "exceed_context_size_error", Message: "no"}, 0, 0},
		"a code of another family": {400, ErrorDetail{Code: "model_max_prompt_tokens_exceeded", Message: "no"}, 0, 0},
		"a limit reached":          {413, ErrorDetail{Code: "tokens_limit_reached", Message: "Body too large. Max size: 8000 tokens."}, 0, 8000},
		"a class name in the text": {400, ErrorDetail{Message: "proxy.ContextWindowExceededError: BadRequestError: x"}, 0, 0},
		"prompt and maximum":       {400, ErrorDetail{Message: "This model's maximum prompt length is 131072 but the request contains 140210 tokens."}, 140210, 131072},
		"a count and the limit":    {400, ErrorDetail{Message: "prompt token count of 140001 exceeds the limit of 128000"}, 140001, 128000},
		"with commas":              {400, ErrorDetail{Message: "Your prompt has 140,210 tokens; at most 131,072 fit"}, 140210, 131072},
		"greater than":             {400, ErrorDetail{Message: "prompt is too long: 215000 tokens > 200000 maximum"}, 215000, 200000},
		"a sum":                    {400, ErrorDetail{Message: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease one"}, 190000, 200000},
		"a sum in words":           {400, ErrorDetail{Message: "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (7500 in the messages, 2500 in the completion)."}, 7500, 8192},
		"a setting":                {400, ErrorDetail{Message: "'max_tokens' is too large: 32768. This model's maximum context length is 32768 tokens and your request has 2154 input tokens (32768 > 32768 - 2154)."}, 2154, 32768},
		"a range":                  {400, ErrorDetail{Message: "<400> Algo.InvalidParameter: Range of input length should be [1, 129024]"}, 0, 129024},
		"names of parameters":      {400, ErrorDetail{Message: "length of prompt_tokens (33000) must be less than max_seq_len (32768)."}, 33000, 32768},
		"less than":                {422, ErrorDetail{Message: "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"}, 0, 4095},
		"images in it":             {400, ErrorDetail{Code: "InvalidParameter", Message: "Total tokens of image and text exceed max message tokens."}, 0, 0},
		"a large payload":          {400, ErrorDetail{Message: "Request payload size exceeds the limit: 20971520 bytes."}, 0, 20971520},
		"words":                    {400, ErrorDetail{Message: "Prompt exceeds max length"}, 0, 0},
		"many words":               {400, ErrorDetail{Message: "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length."}, 0, 0},
		"other words":              {422, ErrorDetail{Message: "The conversation is longer than the model's window"}, 0, 0},
		"a server that fails":      {500, ErrorDetail{Message: "the request exceeds the available context size (8192 tokens)"}, 0, 8192},
		"a large body":             {413, ErrorDetail{Message: "Request Entity Too Large"}, 0, 0},
		"in a stream":              {0, ErrorDetail{Message: "Input is too long for the requested model's context window"}, 0, 0},
		"too much for a minute":    {429, ErrorDetail{Code: "rate_limit_exceeded", Message: "Limit 30000, Requested 40000 tokens per min"}, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := Classify(test.status, test.detail)
			if e.Status != model.ContextWindowExceeded || e.Retryable {
				t.Fatalf("%s, retryable %t", e.Status, e.Retryable)
			}
			if e.PromptTokens != test.prompt || e.ContextTokens != test.window {
				t.Errorf("prompt %d, window %d; want %d, %d", e.PromptTokens, e.ContextTokens, test.prompt, test.window)
			}
		})
	}
}

// Errors that speak of contexts, tokens or calls and mean something else.
func TestOtherErrors(t *testing.T) {
	tests := map[string]struct {
		status int
		detail ErrorDetail
		want   model.Status
	}{
		"a proxy's timeout":            {500, ErrorDetail{Message: "upstream: context deadline exceeded while the token was fetched"}, model.ProviderError},
		"the same in a stream":         {0, ErrorDetail{Message: "context deadline exceeded (token limit of the pool)"}, model.ProviderError},
		"a large image":                {400, ErrorDetail{Message: "messages.0.content.1: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"}, model.BadRequest},
		"a large image by code":        {400, ErrorDetail{Code: "input_image_too_large", Message: "no"}, model.BadRequest},
		"an invalid token":             {400, ErrorDetail{Code: "invalid_token", Message: "the token is not valid"}, model.BadRequest},
		"a setting":                    {400, ErrorDetail{Message: "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens"}, model.BadRequest},
		"another setting":              {400, ErrorDetail{Message: "max_tokens: must be less than or equal to 8192 tokens"}, model.BadRequest},
		"a validator":                  {400, ErrorDetail{Message: "thinking.budget_tokens: Input should be greater than or equal to 1024"}, model.BadRequest},
		"temperature":                  {400, ErrorDetail{Message: "temperature: at most 2"}, model.BadRequest},
		"a rate limit":                 {429, ErrorDetail{Code: "rate_limit_exceeded", Type: "tokens", Message: "Limit 30000, Used 29000, Requested 4000"}, model.RateLimited},
		"a rate limit in a stream":     {0, ErrorDetail{Code: "rate_limit_exceeded", Type: "tokens", Message: "slow down"}, model.RateLimited},
		"a call by code":               {400, ErrorDetail{Code: "tool_use_failed", Message: "adjust your prompt"}, model.MalformedCall},
		"a call in words":              {500, ErrorDetail{Message: "Failed to parse tool call arguments as JSON: [parse_error.101]"}, model.MalformedCall},
		"a call in other words":        {500, ErrorDetail{Message: `error parsing tool call: raw='{"a', err=unexpected end of JSON input`}, model.MalformedCall},
		"a call in the history":        {400, ErrorDetail{Message: "messages[3].tool_calls[0]: invalid tool call arguments, not valid JSON"}, model.BadRequest},
		"a reason that is not known":   {400, ErrorDetail{Message: "Provider returned error"}, model.BadRequest},
		"an account without its quota": {403, ErrorDetail{Message: "token quota exceeded"}, model.AuthenticationError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, Classify(test.status, test.detail).Status)
		})
	}
}

// The rules of the HTML standard for event streams, and what servers do beyond them.
func TestEvents(t *testing.T) {
	tests := map[string]struct {
		stream string
		want   []string
	}{
		"events":                      {"data: {\"a\":1}\n\ndata: {\"a\":2}\n\n", []string{`{"a":1}`, `{"a":2}`}},
		"data on several lines":       {"data: {\"a\":\ndata: 1\ndata:}\n\n", []string{"{\"a\":\n1\n}"}},
		"CRLF":                        {"data: {\"a\":\r\ndata: 1}\r\n\r\ndata: 2\r\n\r\n", []string{"{\"a\":\n1}", "2"}},
		"CR":                          {"data: {\"a\":\rdata: 1}\r\rdata: 2\r\r", []string{"{\"a\":\n1}", "2"}},
		"a byte order mark":           {"\ufeffdata: 1\n\n", []string{"1"}},
		"comments and other fields":   {": ping\nevent: x\nid: 7\nretry: 5\ndata: 1\n\n:\n\n", []string{"1"}},
		"no space":                    {"data:1\n\n", []string{"1"}},
		"a field without a colon":     {"data\n\ndata: 1\n\n", []string{"1"}},
		"another field":               {"database: 1\ndata: 2\n\n", []string{"2"}},
		"no blank line":               {"data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n", []string{`{"a":1}`, `{"a":2}`, "[DONE]"}},
		"no end":                      {"data: {\"a\":1}", []string{`{"a":1}`}},
		"a colon in the data":         {"data: {\"a\": \"data: b\"}\n\n", []string{`{"a": "data: b"}`}},
		"a comment between two lines": {"data: {\n: ping\ndata: }\n\n", []string{"{\n}"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(test.stream), iotest.OneByteReader(strings.NewReader(test.stream))} {
				var got []string
				for data, err := range Events(in) {
					require.NoError(t, err)
					got = append(got, string(data))
				}
				assert.Equal(t, test.want, got, "the result")
			}
		})
	}
}

// An event is read before more of the stream arrives, also if its lines end with CR.
func TestEventsAtOnce(t *testing.T) {
	broken := errors.New("broken")
	for _, stream := range []string{"data: 1\n\n", "data: 1\r\r"} {
		var got []string
		for data, err := range Events(io.MultiReader(strings.NewReader(stream), iotest.ErrReader(broken))) {
			if err != nil {
				break
			}
			got = append(got, string(data))
		}
		assert.Equal(t, 1, len(got), "%q: events %q before the end", stream, got)
	}
}

func TestNumbers(t *testing.T) {
	for given, want := range map[string]int64{
		"50": 50, "50.0": 50, `"50"`: 50, "5e1": 50, "-1": 0, "1e300": 1 << 40, "null": 0, "true": 0, `"x"`: 0, "{}": 0, "[1]": 0, `"NaN"`: 0,
	} {
		var n struct{ N Number }
		if err := Unmarshal([]byte(`{"n":`+given+`}`), &n); err != nil || n.N.Tokens() != want {
			t.Errorf("%s is %d (%v), want %d", given, n.N.Tokens(), err, want)
		}
	}
}
