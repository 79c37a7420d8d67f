package fake_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model/fake"
)

// With Tokens, chat completions have the replies of the script, with token ids and log probabilities.
func TestTokens(t *testing.T) {
	s, l, stop := serve(t, fake.Config{Tokens: true})
	defer stop()
	ask := func(instance string, replies int) (*http.Response, map[string]any) {
		t.Helper()
		body := strings.TrimSuffix(simple("openai", "hello", replies), "}") + `,"return_token_ids":true,"logprobs":true,"top_logprobs":0}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://fake/v1/chat/completions", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set(fake.InstanceHeader, instance)
		response, err := client(l).Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		var answer map[string]any
		require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
		return response, answer
	}
	for replies, want := range []string{"Look.\n\n```bash\nls\n```", "Done."} {
		_, answer := ask("", replies)
		choices, _ := answer["choices"].([]any)
		choice, _ := choices[0].(map[string]any)
		message, _ := choice["message"].(map[string]any)
		prompt, _ := answer["prompt_token_ids"].([]any)
		ids, _ := choice["token_ids"].([]any)
		logprobs, _ := choice["logprobs"].(map[string]any)
		content, _ := logprobs["content"].([]any)
		assert.Equal(t, any(want), message["content"], "reply")
		if len(prompt) == 0 || len(ids) == 0 || len(content) != len(ids) {
			t.Errorf("%d ids of the prompt, %d of the reply, %d log probabilities", len(prompt), len(ids), len(content))
		}
	}
	if response, answer := ask("", 2); response.StatusCode != http.StatusBadRequest || !strings.Contains(string(encoded(t, answer)), `"code":"script_exhausted"`) {
		t.Errorf("after the last reply: %s, %v", response.Status, answer)
	}
	if _, answer := ask("django__django-1", 0); !strings.Contains(string(encoded(t, answer)), `"content":"Named."`) {
		t.Errorf("the reply of an instance: %v", answer)
	}
	assert.Equal(t, 4, s.Stats().Total, "requests")
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

func TestTokensFlag(t *testing.T) {
	var out, errs strings.Builder
	if code := fake.Main([]string{"-tokens", "-faults", "0.1"}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "leave -fault, -faults and -price out") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
