package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/scripted"
)

// serverKey is the key that the server requires. It must never be in a file.
const serverKey = "sk-loopback-0123456789"

// conversation has the replies of the server in their order.
var conversation = []string{
	"I look around.\n\n```bash\nls; pwd\n```",
	"I write a file.\n\n```bash\necho 'print(1)' > made.py && cat made.py\n```",
	"Done.\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 'a patch'\n```",
}

// callConversation has the replies to requests that offer a tool.
const callConversation = `
- tool_calls: [{name: bash, arguments: '{"command":"echo first > made.py"}'}, {name: bash, arguments: '{"command":"echo second >> made.py"}'}]
- tool_calls: [{name: python, arguments: '{"code":"print(1)"}'}, {name: bash, arguments: '{"command":'}]
- tool_calls: [{name: bash, arguments: '{"command":"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat made.py"}'}]
`

// newOpenAI starts a server with OpenAI's and Anthropic's API. Some paths have faults
// (see withFaults).
func newOpenAI(t *testing.T) *httptest.Server {
	t.Helper()
	server := func(replies string, models ...string) http.Handler {
		return newFake(t, replies, fake.Config{Models: models, CheckKey: func(key string) bool { return key == serverKey }})
	}
	replies := func(usage string) string {
		var b strings.Builder
		for _, text := range conversation {
			fmt.Fprintf(&b, "- {content: %q, usage: {prompt_tokens: 100, completion_tokens: 20%s}}\n", text, usage)
		}
		return b.String()
	}
	text, cached, calls := server(replies("")), server(replies(", cached_tokens: 60"), "claude"), server(callConversation)
	s := httptest.NewServer(withFaults(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case bytes.Contains(body, []byte(`"tools":[`)):
			calls.ServeHTTP(w, r)
		case r.Header.Get("Anthropic-Version") != "":
			cached.ServeHTTP(w, r)
		default:
			text.ServeHTTP(w, r)
		}
	})))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients also try TLS, which it would log
	t.Cleanup(s.Close)
	return s
}

// newFake returns a fake provider with these replies.
func newFake(t *testing.T, replies string, c fake.Config) *fake.Server {
	t.Helper()
	var err error
	if c.Script, err = scripted.Parse("replies", []byte(replies)); err != nil {
		t.Fatal(err)
	}
	s, err := fake.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
