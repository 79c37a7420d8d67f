package fake_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/minibench/mini/model/fake"
)

// conversation is one with Anthropic's library, with a tool, thoughts and a
// system prompt that is cached.
type conversation struct {
	client sdk.Client
	params sdk.MessageNewParams
}

func converse(l *fake.Memory) *conversation {
	return &conversation{
		client: sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithAPIKey("sk-marker"), option.WithBaseURL("http://fake"),
			option.WithHTTPClient(client(l)), option.WithMaxRetries(0)),
		params: sdk.MessageNewParams{
			Model: "m", MaxTokens: 4096, Thinking: sdk.ThinkingConfigParamOfEnabled(2048),
			System:   []sdk.TextBlockParam{{Text: "be brief", CacheControl: sdk.NewCacheControlEphemeralParam()}},
			Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("hello"))},
			Tools: []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{Name: "bash", InputSchema: sdk.ToolInputSchemaParam{
				Properties: map[string]any{"command": map[string]any{"type": "string"}},
			}}}},
		},
	}
}

// ask returns the next reply, plain or put together from its events.
func (c *conversation) ask(t *testing.T, stream bool) (*sdk.Message, error) {
	t.Helper()
	if !stream {
		return c.client.Messages.New(t.Context(), c.params)
	}
	m := &sdk.Message{}
	events := c.client.Messages.NewStreaming(t.Context(), c.params)
	for events.Next() {
		if err := m.Accumulate(events.Current()); err != nil {
			return nil, err
		}
	}
	return m, events.Err()
}

// reply returns the results of the calls of a reply, with what it said and
// thought: the signature of a thought goes back as it came.
func (c *conversation) reply(m *sdk.Message) {
	var results []sdk.ContentBlockParamUnion
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			results = append(results, sdk.NewToolResultBlock(b.ID, "README", false))
		}
	}
	c.params.Messages = append(c.params.Messages, m.ToParam(), sdk.NewUserMessage(results...))
}

// Anthropic's own library understands replies of both kinds in the same way,
// and the server takes what it sends back.
func TestAnthropicSDK(t *testing.T) {
	for _, stream := range []bool{false, true} {
		s, l, stop := serve(t, fake.Config{})
		c := converse(l)
		first, err := c.ask(t, stream)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, b := range first.Content {
			kinds = append(kinds, b.Type+" "+b.Thinking+b.Text+string(b.Input))
		}
		if got, want := strings.Join(kinds, "; "), `thinking Where am I?; text Look.; tool_use {"command":"ls"}`; got != want || first.StopReason != "tool_use" {
			t.Errorf("stream %t: %s, stopped by %s; want %s", stream, got, first.StopReason, want)
		}
		c.reply(first)
		second, err := c.ask(t, stream)
		if err != nil {
			t.Fatal(err)
		}
		if second.StopReason != "end_turn" || second.Content[0].Text != "Done." {
			t.Errorf("stream %t: %+v", stream, second)
		}
		var told [4]int64
		for _, m := range []*sdk.Message{first, second} {
			u := m.Usage
			told[0] += u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens
			told[1] += u.CacheCreationInputTokens
			told[2] += u.CacheReadInputTokens
			told[3] += u.OutputTokens
		}
		stop()
		u := s.Books().Charged.Usage
		if charged := [4]int64{u.Prompt, u.CacheWrite, u.CacheRead, u.Completion}; charged != told || u.CacheRead == 0 || u.CacheWrite == 0 {
			t.Errorf("stream %t: told %v, charged %v", stream, told, charged)
		}
	}
}

// How that library sees what goes wrong: a cut stream is no error to it.
func TestAnthropicSDKSeesFaults(t *testing.T) {
	tests := []struct {
		fault  string
		stream bool
		status int    // of its own kind of error, 0 for another kind or none
		want   string // "" for none
	}{
		{"overloaded", false, 529, "overloaded_error"},
		{"overloaded", true, 529, "overloaded_error"},
		{"rate-limit", true, http.StatusTooManyRequests, "rate_limit_error"},
		{"context", false, http.StatusBadRequest, "prompt is too long"},
		{"error-event", true, http.StatusOK, "api_error"},
		{"reset-mid", false, 0, "EOF"},
		{"drop", true, 0, "EOF"},
		{"cut", true, 0, ""},
		{"no-finish", false, 0, ""},
	}
	for _, test := range tests {
		s, l, stop := serve(t, fake.Config{Plan: &fake.Plan{Rules: []fake.Rule{{Fault: test.fault}}}})
		_, err := converse(l).ask(t, test.stream)
		status := 0
		if known, ok := errors.AsType[*sdk.Error](err); ok {
			status = known.StatusCode
		}
		if status != test.status || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, stream %t: %d %v; want %d %s", test.fault, test.stream, status, err, test.status, test.want)
		}
		stop()
		if b := s.Books(); b.Seen != 1 {
			t.Errorf("%s: %d requests", test.fault, b.Seen)
		}
	}
}
