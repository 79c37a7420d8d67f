package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/mcp"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// programConfig returns the configuration of a server that is this test binary.
func programConfig(kind string) mcp.Config {
	return mcp.Config{Name: "books", Command: []string{os.Args[0]}, Env: []string{asServer + "=" + kind}, Secrets: []string{"sk-secret"}, Timeout: 20 * time.Second}
}

// connect connects to a server and returns a registry of its tools.
func connect(t *testing.T, c mcp.Config) *tools.Registry {
	t.Helper()
	s, err := mcp.Connect(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	registry, err := tools.New(tools.Config{Tools: mcp.Tools(func(string) bool { return false }, s)})
	require.NoError(t, err)
	return registry
}

func callTool(ctx context.Context, registry *tools.Registry, line string) agent.ToolResponse {
	args, input, _ := strings.Cut(line, " < ")
	return registry.Handle(ctx, agent.ToolRequest{ToolRequest: env.ToolRequest{Args: strings.Split(args, " "), Stdin: []byte(input)}})
}

// httpConfig returns the configuration of a server over HTTP that requires a token.
func httpConfig(t *testing.T) mcp.Config {
	t.Helper()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newServer() }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-secret" {
			http.Error(w, "who are you with "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return mcp.Config{Name: "books", URL: s.URL, Token: "sk-secret", Timeout: 20 * time.Second}
}

func TestCalls(t *testing.T) {
	for name, config := range map[string]func(t *testing.T) mcp.Config{
		"a program": func(*testing.T) mcp.Config { return programConfig("good") },
		"a URL":     httpConfig,
	} {
		t.Run(name, func(t *testing.T) {
			registry := connect(t, config(t))
			tests := map[string]struct {
				line    string
				code    int
				output  string
				errors  string
				details string
			}{
				"text":            {line: "echo --text a", output: `{"text":"a"}` + "\n", details: `{"server":"books","tool":"echo","arguments":{"text":"a"}}`},
				"values by type":  {line: "echo --text 5 --times 3 --loud --how slow", output: `{"how":"slow","loud":true,"text":"5","times":3}` + "\n"},
				"a false one":     {line: "echo --loud false --text=", output: `{"loud":false,"text":""}` + "\n"},
				"a list in JSON":  {line: `echo --json {"text":"a","tags":["p","q"]}`, output: `{"tags":["p","q"],"text":"a"}` + "\n"},
				"whole":           {line: `echo --json {"text":"a","times":9007199254740993}`, output: `{"text":"a","times":9007199254740993}` + "\n"},
				"input":           {line: `echo - < {"text":"a","odd key":1.5}`, output: `{"odd key":1.5,"text":"a"}` + "\n"},
				"missing":         {line: "echo", code: 2, errors: "mini-tool: echo: --text is missing\nusage: mini-tool echo --text TEXT [--how fast|slow] [--loud true|false] [--times N]\n       mini-tool echo --json OBJECT\n       mini-tool echo -"},
				"no number":       {line: "echo --text a --times x", code: 2, errors: `--times is to be a whole number, not "x"`},
				"no whole number": {line: `echo --json {"text":"a","times":1.5}`, code: 2, errors: "times: type: 1.5 has type \"number\", want \"integer\""},
				"no text":         {line: `echo --json {"text":1}`, code: 2, errors: "text: type: 1 has type"},
				"no such word":    {line: "echo --text a --how soon", code: 2, errors: "how: enum: soon does not equal any of: [fast slow]"},
				"in a list":       {line: `echo --json {"text":"a","tags":["x",1]}`, code: 2, errors: "tags/items: type: 1 has type"},
				"no such key":     {line: "echo --txet a", code: 2, errors: `there is no flag "--txet"; did you mean --text?`},
				"no key in JSON":  {line: `echo --json {"text":"a","more":1}`, code: 2, errors: "unexpected additional properties [\"more\"]"},
				"no key":          {line: "echo a", code: 2, errors: `"a" belongs to no key: arguments are written as --key VALUE`},
				"no JSON":         {line: "echo - < {", code: 2, errors: "the standard input is no JSON: unexpected EOF"},
				"empty input":     {line: "echo -", code: 2, errors: "the standard input is no JSON: it is empty"},
				"two of JSON":     {line: "echo - < {} {}", code: 2, errors: "something follows"},
				"no object":       {line: "echo --json []", code: 2, errors: "--json is no JSON object"},
				"both":            {line: `echo --text a --json {"text":"b"}`, code: 2, errors: "--text stands beside the object"},
				"it fails":        {line: "fail", code: 1, output: "no such book\n"},
				"parts": {
					line:    "show_all",
					output:  "see\n[image, image/png, 1000 bytes: not shown]\n[audio, audio/wav, 1 bytes: not shown]\n[resource a: file:///a]\ninside\n",
					details: `{"server":"books","tool":"show.all","structured":{"key":"[secret]","n":1}}`,
				},
				"structured": {line: "structured", output: "{\n  \"n\": 1\n}\n", details: `{"server":"books","tool":"structured","structured":{"n":1}}`},
				"an error":   {line: "wrong", code: 1, errors: "out of paper, [secret]"},
				"a secret":   {line: "leak", output: "the key is [secret]\n"},
				"help":       {line: "help echo", output: "usage: mini-tool echo --text TEXT*\n\nSays what it was told\n\nSays what it was told. And more.\nMuch more.\n  text: (string) What to say.\n*"},
			}
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					got := callTool(t.Context(), registry, test.line)
					out := string(got.Stdout)
					if begin, rest, more := strings.Cut(test.output, "*"); more {
						if !strings.HasPrefix(out, begin) || !strings.Contains(out, strings.TrimSuffix(rest, "*")) {
							t.Errorf("output:\n%s\nwant:\n%s", out, test.output)
						}
					} else if out != test.output {
						t.Errorf("output %q, want %q", out, test.output)
					}
					if got.ExitCode != test.code || !strings.Contains(string(got.Stderr), test.errors) || test.errors == "" && len(got.Stderr) > 0 {
						t.Errorf("%d %q, want %d %q", got.ExitCode, got.Stderr, test.code, test.errors)
					}
					if data, _ := json.Marshal(got.Details); test.details != "" && string(data) != test.details {
						t.Errorf("details %s, want %s", data, test.details)
					}
				})
			}
		})
	}
}

func TestList(t *testing.T) {
	s, err := mcp.Connect(t.Context(), programConfig("good"))
	require.NoError(t, err)
	defer s.Close()
	info := s.Info()
	if info.Name != "books" || info.Server != "books" || info.Version != "1.2" || len(info.Tools) != 9 {
		t.Errorf("%+v", info)
	}
	names := func(list []tools.Tool) string {
		var all []string
		for _, one := range list {
			all = append(all, one.Spec().Name)
		}
		return strings.Join(all, " ")
	}
	isTaken := func(name string) bool { return name == "echo" }
	if got, want := names(mcp.Tools(isTaken, s)), "die books_echo fail hang leak pid show_all structured wrong"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	two, err := mcp.Connect(t.Context(), func() mcp.Config {
		c := programConfig("good")
		c.Name, c.AllowedTools = "shelf", []string{"pid", "echo"}
		return c
	}())
	require.NoError(t, err)
	defer two.Close()
	if got, want := names(mcp.Tools(isTaken, s, two)), "die books_echo fail hang leak books_pid show_all structured wrong shelf_echo shelf_pid"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFailingServers checks that a failing server makes the call fail, and that the next
// call opens a new session.
func TestFailingServers(t *testing.T) {
	for name, test := range map[string]struct {
		kind, line string
		limit      time.Duration
		code       int
		errors     string
		nextLine   string // a later call, which succeeds
	}{
		"it dies in mid-call":            {"good", "die", 0, 1, "mini-tool: die: the MCP server books did not answer: ", "pid"},
		"it hangs":                       {"good", "hang", 5 * time.Second, 1, "mini-tool: hang: the MCP server books did not answer: it took longer than the 5s that it may take, and was given up\n", "pid"},
		"it does not even answer a ping": {"deaf", "t", time.Second, 1, "took longer", ""},
		"garbage":                        {"garbage", "t", 0, 1, "the MCP server books did not answer: ", ""},
		"an answer of another form":      {"other", "t", 0, 1, "the MCP server books did not answer: ", ""},
		"flood":                          {"flood", "t", 0, 1, "the MCP server books did not answer: ", ""},
		"chatter":                        {"chatter", "t", time.Second, 1, "took longer", ""},
		"big":                            {"big", "t", 0, 0, "", ""},
		"refuses":                        {"refuse", "t", 0, 2, "mini-tool: t: the server refuses it: x is missing\nusage: mini-tool t", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := programConfig(test.kind)
			if test.limit > 0 {
				c.Timeout = test.limit
			}
			registry := connect(t, c)
			before := string(callTool(t.Context(), registry, "pid").Stdout)
			for range 2 { // the second call has a new server
				got := callTool(t.Context(), registry, test.line)
				if got.ExitCode != test.code || !strings.Contains(string(got.Stderr), test.errors) || test.errors == "" && len(got.Stderr) > 0 {
					t.Errorf("%d %q, want %d %q", got.ExitCode, got.Stderr, test.code, test.errors)
				}
				if len(got.Stdout) > 70<<10 {
					t.Errorf("%d bytes", len(got.Stdout))
				}
			}
			if test.nextLine == "" {
				return
			}
			after := callTool(t.Context(), registry, test.nextLine)
			if after.ExitCode != 0 || (string(after.Stdout) == before) != (test.line == "hang") {
				t.Errorf("%d %q %q, before %q", after.ExitCode, after.Stdout, after.Stderr, before)
			}
		})
	}
}

// TestErrorsIncludeStderr checks that errors include the end of standard error.
func TestErrorsIncludeStderr(t *testing.T) {
	registry := connect(t, programConfig("good"))
	var wg sync.WaitGroup
	for range 4 { // all pending calls are answered
		wg.Go(func() {
			if got := callTool(t.Context(), registry, "die"); got.ExitCode != 1 || !strings.Contains(string(got.Stderr), "MCP server books") {
				t.Errorf("%d %q", got.ExitCode, got.Stderr)
			}
		})
	}
	wg.Wait()
	if got := callTool(t.Context(), registry, "die"); !strings.Contains(string(got.Stderr), "out of memory") {
		t.Errorf("%q", got.Stderr)
	}
}

func TestConnect(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	moved := httptest.NewServer(http.RedirectHandler("http://198.51.100.1/mcp", http.StatusTemporaryRedirect))
	defer moved.Close()
	text := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer text.Close()
	with := func(c mcp.Config, change func(*mcp.Config)) mcp.Config { change(&c); return c }
	for name, test := range map[string]struct {
		config mcp.Config
		err    string
	}{
		"no program":       {mcp.Config{Name: "books", Command: []string{"no-such-program-here"}}, `MCP server books: program not found: "no-such-program-here"`},
		"it ends at once":  {programConfig("refuses"), "standard error ends with: ready"},
		"its list is none": {programConfig("garbled list"), "MCP server books: list tools"},
		"endless pages":    {programConfig("endless"), "more than 100 pages"},
		"too many tools":   {programConfig("many"), "more than 500 tools"},
		"no such tool":     {with(programConfig("good"), func(c *mcp.Config) { c.AllowedTools = []string{"sing"} }), `the server has no tool "sing"`},
		"nobody listens":   {mcp.Config{Name: "books", URL: closed.URL}, "connection refused"},
		"no URL":           {mcp.Config{Name: "books", URL: "books.example"}, "the URL must begin with http:"},
		"the wrong token":  {with(httpConfig(t), func(c *mcp.Config) { c.Token = "sk-wrong" }), "MCP server books: "},
		"sent elsewhere":   {mcp.Config{Name: "books", URL: moved.URL, Token: "sk-secret"}, "refuse redirect"},
		"no MCP at all":    {mcp.Config{Name: "books", URL: text.URL}, "MCP server books: "},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := mcp.Connect(t.Context(), test.config)
			if err == nil {
				t.Fatal("it connects", s.Close())
			}
			if want := test.err; want == "standard error ends with: ready" {
				assert.Contains(t, err.Error(), "standard error ends with: no licence for [secret]")
			} else if !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
			if strings.Contains(err.Error(), "sk-") {
				t.Errorf("a secret: %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("the user has had enough")) })
	_, err := mcp.Connect(ctx, programConfig("mute"))
	assert.ErrorContains(t, err, "had enough")
}

// TestClose checks that Close ends the program, even if it ignores the end of its
// input.
func TestClose(t *testing.T) {
	for _, kind := range []string{"good", "deaf"} {
		c := programConfig(kind)
		c.Timeout = 2 * time.Second
		s, err := mcp.Connect(t.Context(), c)
		require.NoError(t, err)
		list := mcp.Tools(func(string) bool { return false }, s)
		for _, one := range list {
			if name := one.Spec().Name; name == "pid" || name == "t" {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				res, _ := one.Call(ctx, tools.Call{})
				cancel()
				assert.NoError(t, s.Close())
				if pid := strings.TrimSpace(res.Output); pid != "" {
					_, err := os.Stat(filepath.Join("/proc", pid))
					assert.Error(t, err, "%s lives", pid)
				}
				_, err := one.Call(t.Context(), tools.Call{})
				assert.ErrorContains(t, err, "the connection is closed")
			}
		}
	}
}
