package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/host"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// callTool calls the tool x, which runs a script.
func callTool(t *testing.T, script string, change func(*host.Config), req env.ToolRequest) agent.ToolResponse {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here")
	}
	c := host.Config{Name: "x", Command: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Instance: "a__b-1"}
	if change != nil {
		change(&c)
	}
	tool, err := host.New(c)
	require.NoError(t, err)
	registry, err := tools.New(tools.Config{Tools: []tools.Tool{tool}})
	require.NoError(t, err)
	req.Args = append([]string{"x"}, req.Args...)
	return registry.Handle(t.Context(), agent.ToolRequest{ToolRequest: req})
}

// withSecret gives the program a secret that contains a character that JSON escapes.
func withSecret(c *host.Config) {
	c.Env, c.Secrets = append(c.Env, `KEY=x\y`), []string{`x\y`, ""}
}

// TestTruncatedSecrets puts secrets at every offset around the end of an output.
func TestTruncatedSecrets(t *testing.T) {
	const secret = "q1w2e3r4t5"
	for shift := range len(secret) + 1 {
		script := fmt.Sprintf(`head -c %d /dev/zero | tr '\0' .; printf %%s "$KEY$KEY"; printf %%s "$KEY" >&2; head -c %d /dev/zero | tr '\0' . >&2`, env.MaxToolResponse-shift, 8<<10-shift)
		tool, err := host.New(host.Config{
			Name: "x", Command: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "KEY=" + secret}, Secrets: []string{secret},
		})
		if err != nil {
			t.Skip(err)
		}
		res, err := tool.Call(t.Context(), tools.Call{})
		d, ok := res.Details.(host.Details)
		if err != nil || !ok || strings.ContainsAny(res.Output+d.Stderr, "qw12345") || len(res.Output) < env.MaxToolResponse/2 || len(d.Stderr) < 4<<10 {
			t.Errorf("%d: %v: %q, %q", shift, err, res.Output[max(0, len(res.Output)-30):], d.Stderr[:min(30, len(d.Stderr))])
		}
	}
}

func TestCall(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	req := env.ToolRequest{Args: []string{"a b", "-"}, Stdin: []byte("in\n"), Dir: "/testbed"}
	tests := map[string]struct {
		script          string
		change          func(*host.Config)
		code            int
		output, errors  string
		stderr          string // as recorded
		bytes, exitCode int
	}{
		"the call": {
			script: "cat", output: `{"name":"x","args":["a b","-"],"input":"in\n","dir":"/testbed","instance":"a__b-1"}` + "\n", bytes: 84,
		},
		"nothing read":  {script: "echo hi", output: "hi\n", bytes: 3},
		"nothing said":  {script: "true"},
		"no line feed":  {script: "printf hi", output: "hi", bytes: 2},
		"a word aside":  {script: "echo hi; echo aside >&2", output: "hi\n", stderr: "aside\n", bytes: 3},
		"no keys":       {script: `echo "[$OPENAI_API_KEY]"`, output: "[]\n", bytes: 3},
		"a key by name": {script: `echo "[$KEY]"`, change: func(c *host.Config) { c.Env = append(c.Env, "KEY=k") }, output: "[k]\n", bytes: 4},
		"a secret": {
			script: `echo "[$KEY] in \"x\\\\y\""; echo "say $KEY" >&2; exit 3`, change: withSecret, code: 1, output: "[[secret]] in \"[secret]\"\n",
			errors: "mini-tool: x: the program ended with exit status 3:\nsay [secret]\n", stderr: "say [secret]\n", bytes: 15, exitCode: 3,
		},
		"it fails":         {script: "echo half; echo no index >&2; exit 3", code: 1, output: "half\n", errors: "mini-tool: x: the program ended with exit status 3:\nno index\n", stderr: "no index\n", bytes: 5, exitCode: 3},
		"it fails, silent": {script: "exit 4", code: 1, errors: "mini-tool: x: the program ended with exit status 4\n", exitCode: 4},
		"it is killed":     {script: "kill -9 $$", code: 1, errors: "mini-tool: x: the program ended with signal: killed\n", exitCode: -1},
		"it floods": {
			script: "yes | head -c 5000000; yes no | head -c 3000000 >&2", change: func(c *host.Config) { c.MaxOutput = 10 },
			output: "y\ny\ny\ny\ny\n\n[mini-tool: the last 4999990 of 5000000 bytes were left out]\n", stderr: "no\n*", bytes: 5000000,
		},
		"no UTF-8": {script: `printf 'a\377'; printf 'b\377' >&2`, output: "a\xff", stderr: "b\uFFFD", bytes: 2},
		"a mistake": {
			script: "echo never", change: func(c *host.Config) { c.Check = func(tools.Call) error { return tools.Usagef("too many") } },
			code: 2, errors: "mini-tool: x: too many\nusage: mini-tool x ARGS...\n", exitCode: -99,
		},
		"a folder": {script: "pwd", change: func(c *host.Config) { c.Dir = "/" }, output: "/\n", bytes: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := callTool(t, test.script, test.change, req)
			if got.ExitCode != test.code || string(got.Stdout) != test.output || string(got.Stderr) != test.errors {
				t.Errorf("%d %.300q %q, want %d %.300q %q", got.ExitCode, got.Stdout, got.Stderr, test.code, test.output, test.errors)
			}
			var d host.Details
			if raw, ok := got.Details.(json.RawMessage); ok {
				require.NoError(t, json.Unmarshal(raw, &d))
			} else {
				d.ExitCode = -99
			}
			if want, more := strings.CutSuffix(test.stderr, "*"); !more && d.Stderr != want || len(d.Stderr) > 8<<10 || more && len(d.Stderr) < 1000 {
				t.Errorf("stderr %.100q (%d bytes), want %q", d.Stderr, len(d.Stderr), test.stderr)
			}
			if d.ExitCode != test.exitCode || d.Bytes != int64(test.bytes) {
				t.Errorf("exit code %d and %d bytes, want %d and %d", d.ExitCode, d.Bytes, test.exitCode, test.bytes)
			}
		})
	}
}

// TestTimeout checks that a timeout kills all processes of a program.
func TestTimeout(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what leaves its group is found on Linux")
	}
	for name, test := range map[string]struct {
		script string
		output string
	}{
		"itself":              {script: `echo begun; echo $$ > pid; exec sleep 1000`, output: "begun\n"},
		"a child":             {script: `sleep 1000 & echo $! > pid; wait`},
		"a session":           {script: `setsid sh -c 'echo $$ > pid; exec sleep 1000' & wait`},
		"a session, detached": {script: `(setsid sh -c 'echo $$ > pid; exec sleep 1000' < /dev/null > /dev/null 2>&1 &); sleep 1000`},
		"deaf":                {script: `trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 1000; done`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			limit := 700 * time.Millisecond
			call := func() agent.ToolResponse {
				return callTool(t, test.script, func(c *host.Config) { c.Timeout, c.Dir = limit, dir }, env.ToolRequest{})
			}
			got := call()
			for !hasText(filepath.Join(dir, "pid")) && limit < time.Minute { // a busy machine needs longer to start it
				limit *= 4
				got = call()
			}
			if want := fmt.Sprintf("mini-tool: x: it took longer than the %v that it may take, and was stopped\n", limit); string(got.Stderr) != want || got.ExitCode != 1 {
				t.Errorf("%d %q, want %q", got.ExitCode, got.Stderr, want)
			}
			assert.Equal(t, test.output, string(got.Stdout), "output")
			waitForExit(t, filepath.Join(dir, "pid"))
		})
	}
}

func hasText(file string) bool {
	text, _ := os.ReadFile(file)
	return len(text) > 0
}

// TestLeftoverProcesses checks that processes that the program left in its group are
// killed when it exits.
func TestLeftoverProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked at in /proc")
	}
	dir := t.TempDir()
	got := callTool(t, `sleep 1000 & echo $! > pid; echo done`, func(c *host.Config) { c.Dir = dir }, env.ToolRequest{})
	if got.ExitCode != 0 || string(got.Stdout) != "done\n" {
		t.Errorf("%d %q %q", got.ExitCode, got.Stdout, got.Stderr)
	}
	waitForExit(t, filepath.Join(dir, "pid"))
}

// TestContextEnds checks that the program is killed when the calling command ends.
func TestContextEnds(t *testing.T) {
	tool, err := host.New(host.Config{Name: "x", Command: []string{"sleep", "1000"}})
	if err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("the command is over")) })
	if _, err := tool.Call(ctx, tools.Call{}); err == nil || err.Error() != "the command is over" {
		t.Error(err)
	}
}

// waitForExit waits until the process whose ID is in a file has exited.
func waitForExit(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	stat := filepath.Join("/proc", strings.TrimSpace(string(data)), "stat")
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-poll.C {
		text, err := os.ReadFile(stat)
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it lives: %s", text)
		}
	}
}

func TestNew(t *testing.T) {
	for name, test := range map[string]struct {
		config host.Config
		err    string
	}{
		"no program":  {host.Config{Name: "x", Command: []string{"no-such-program-here"}}, `tool x: program not found or not executable: "no-such-program-here"`},
		"no command":  {host.Config{Name: "x"}, "the command is empty"},
		"a bad name":  {host.Config{Name: "x y", Command: []string{"true"}}, "is invalid"},
		"a directory": {host.Config{Name: "x", Command: []string{t.TempDir()}}, "not executable"},
	} {
		_, err := host.New(test.config)
		assert.ErrorContains(t, err, test.err, "%s", name)
	}
	for usage, want := range map[string]string{"": "x ARGS...", "x A": "x A", "A B": "x A B", "xy": "x xy"} {
		tool, err := host.New(host.Config{Name: "x", Command: []string{"true"}, Usage: usage})
		if err != nil || tool.Spec().Usage != want {
			t.Errorf("%q is %q (%v), want %q", usage, tool.Spec().Usage, err, want)
		}
	}
}

func TestSearch(t *testing.T) {
	tool, err := host.NewSearch(host.Config{Command: []string{"cat"}})
	if err != nil {
		t.Skip(err)
	}
	if got := tool.Spec(); got.Name != "search" || got.Usage != "search [--limit N] QUERY" {
		t.Errorf("%+v", got)
	}
	for args, want := range map[string]string{
		"--limit 5 how to":  `{"name":"search","args":["--limit","5","how","to"],"dir":""}` + "\n",
		"":                  "the query is missing",
		"--limit 5":         "the query is missing",
		"--limit 0 x":       "from 1 to 100",
		"--limit":           "needs a value",
		"--max 3 x":         `no flag "--max"`,
		"-":                 "the query is missing",
		"-- --limit really": `{"name":"search","args":["--","--limit","really"],"dir":""}` + "\n",
	} {
		res, err := tool.Call(t.Context(), tools.Call{Args: strings.Fields(args)})
		got := res.Output
		if err != nil {
			got = err.Error()
		}
		assert.Contains(t, got, want, "%q", args)
	}
}
