package fake_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/scripted"
)

// replies is a script with two replies for any instance, and one for django__django-1.
const replies = `
"*":
  - content: "Look.\n\n` + "```bash\\nls\\n```" + `"
    reasoning_content: "Where am I?"
  - "Done."
django__django-1: ["Named."]
`

func script(t *testing.T, yaml string) *scripted.Script {
	t.Helper()
	s, err := scripted.Parse("replies.yaml", []byte(yaml))
	require.NoError(t, err)
	return s
}

// serve starts an in-memory server. In a synctest bubble the test must call the
// returned function, since the bubble ends before the test's cleanup.
func serve(t *testing.T, c fake.Config) (*fake.Server, *fake.MemoryListener, func()) {
	t.Helper()
	if c.Script == nil {
		c.Script = script(t, replies)
	}
	s, err := fake.New(c)
	require.NoError(t, err)
	l := fake.NewMemoryListener()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return s, l, sync.OnceFunc(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, <-done)
	})
}

// plan returns a plan that gives each request one of these faults, in order.
func plan(faults ...string) *fake.Plan {
	p := &fake.Plan{}
	for i, name := range faults {
		p.Rules = append(p.Rules, fake.Rule{Faults: []string{name}, Wait: time.Hour})
		if len(faults) > 1 {
			p.Rules[i].Requests = []int{i + 1}
		}
	}
	return p
}

// body returns the body of a request with a tool and thinking.
func body(api string, stream bool) string {
	if api == "anthropic" {
		return fmt.Sprintf(`{"model":"m","max_tokens":2048,"stream":%t,"thinking":{"type":"enabled","budget_tokens":1024},`+
			`"messages":[{"role":"user","content":"hello"}],"tools":[{"name":"bash","input_schema":{"type":"object","properties":{"command":{"type":"string"}}}}]}`, stream)
	}
	return fmt.Sprintf(`{"model":"m","stream":%t,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}],`+
		`"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}}]}`, stream)
}

// simple returns the body of a request without tools, for a conversation with a number of replies.
func simple(api, first string, replies int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":%q}`, first)
	for range replies {
		b.WriteString(`,{"role":"assistant","content":"a"},{"role":"user","content":"go on"}`)
	}
	b.WriteString("]")
	if api == "anthropic" {
		b.WriteString(`,"cache_control":{"type":"ephemeral"}`)
	}
	return b.String() + "}"
}

func path(api string) string {
	if api == "anthropic" {
		return "/v1/messages"
	}
	return "/v1/chat/completions"
}

// raw sends a request as bytes and returns the whole response.
func raw(t *testing.T, l *fake.MemoryListener, api, body string) string {
	t.Helper()
	conn, err := l.DialContext(t.Context(), "", "")
	require.NoError(t, err)
	defer conn.Close()
	headers := "Authorization: Bearer sk-marker\r\n"
	if api == "anthropic" {
		headers = "Anthropic-Version: 2023-06-01\r\nX-Api-Key: sk-marker\r\n"
	}
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: fake\r\nConnection: close\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path(api), headers, len(body), body); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(answer)
}

// client returns a client of an in-memory server, without keep-alive.
func client(l *fake.MemoryListener) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: l.DialContext, DisableKeepAlives: true}}
}
