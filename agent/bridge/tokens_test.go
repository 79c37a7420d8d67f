package bridge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/fake/vllm"
	"github.com/minibench/mini/model/raw"
)

// startTokens starts a fixture whose chat completions are of s.
func startTokens(t *testing.T, s *vllm.Server) *fixture {
	t.Helper()
	s.Reply = func(string, []model.Message) string { return "one word and another <word>" }
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return start(t, fake.Config{}, func(c *bridge.Config) {
		c.Tokens = true
		c.Model = raw.New(raw.Config{BaseURL: server.URL, Key: key, HTTPClient: server.Client()})
	})
}

// The agent gets the tokens that it asks for, and mini always.
func TestTokens(t *testing.T) {
	for fields, want := range map[string]struct{ ids, logprobs bool }{
		``:                          {false, false},
		`"logprobs":false,`:         {false, false},
		`"top_logprobs":2,`:         {false, false},
		`"return_token_ids":true,`:  {true, false},
		`"return_token_ids":false,`: {false, false},
		`"logprobs":true,`:          {false, true},
		`"logprobs":true,"top_logprobs":2,"return_token_ids":true,`: {true, true},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(fields, stream), func(t *testing.T) {
				s := &vllm.Server{Drift: 1}
				f := startTokens(t, s)
				r := requests(stream)[0]
				r.body = "{" + fields + r.body[1:]
				_, body := f.post(t.Context(), r)
				assert.Equal(t, want.ids, strings.Contains(body, `"token_ids":[`), "ids in %s", body)
				assert.Equal(t, want.ids, strings.Contains(body, `"prompt_token_ids":[`), "ids of the prompt")
				assert.Equal(t, want.logprobs, strings.Contains(body, `"logprob":`), "log probabilities")
				assert.Equal(t, !stream, strings.Contains(body, `"usage":{`), "usage")
				x := f.exchanges[0]
				require.NoError(t, x.Err)
				if diff := cmp.Diff(&s.Calls("")[0].Tokens, x.Reply.Tokens); diff != "" {
					t.Errorf("(-books +kept):\n%s", diff)
				}
				if strings.Contains(string(x.Reply.Raw), "token_ids") {
					t.Errorf("the answer has the tokens too: %s", x.Reply.Raw)
				}
				top := "0"
				if want.logprobs && strings.Contains(fields, "top") {
					top = "2"
				}
				assert.Equal(t, top, string(x.Request.Get("top_logprobs")), "top_logprobs")
				assert.Equal(t, want.ids, !strings.Contains(fmt.Sprint(x.Edits), "return_token_ids added"), "edits %v", x.Edits)
			})
		}
	}
}

// Dialects without tokens are named once. Requests that count tokens ask for none.
func TestTokensUnavailable(t *testing.T) {
	f := start(t, fake.Config{}, func(c *bridge.Config) { c.Tokens = true })
	for range 2 {
		for _, r := range requests(false)[1:] {
			if resp, body := f.post(t.Context(), r); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: status %d, %s", r.name, resp.StatusCode, body)
			}
		}
	}
	require.Equal(t, 3, len(f.warnings), "warnings %q", f.warnings)
	for i, name := range []string{"responses", "messages", "gemini"} {
		assert.Contains(t, f.warnings[i], "TokensUnavailable: requests in the dialect "+name+" get no token ids")
	}
}

// An answer without tokens is an error that the agent must not ask again for.
func TestNoTokens(t *testing.T) {
	for _, stream := range []bool{false, true} {
		f := startTokens(t, &vllm.Server{Silent: true})
		resp, body := f.post(t.Context(), requests(stream)[0])
		if !stream && (resp.StatusCode != http.StatusBadRequest || resp.Header.Get("X-Should-Retry") != "false") {
			t.Errorf("status %d, %v", resp.StatusCode, resp.Header)
		}
		assert.Contains(t, body, "the server sends no token ids")
		if strings.Contains(body, "[DONE]") || f.exchanges[0].Err == nil {
			t.Errorf("the answer is complete: %s", body)
		}
	}
}
