package envtest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minibench/mini/env"
)

// toolHandler handles a tool request (see env.Tools).
type toolHandler func(ctx context.Context, r env.ToolRequest) env.ToolResponse

// runWithTools runs a command that may call tools.
func (b sandbox) runWithTools(handle toolHandler, c env.Command) env.Result {
	b.t.Helper()
	c.Tools = &env.Tools{Handle: handle}
	return b.run(c)
}

// toolCalls: commands call tools and get the responses of the host.
func toolCalls(t *testing.T, s suite) {
	s.needs(t, Tools)
	b := s.start(t)
	if !b.Info().Tools {
		t.Error("Info.Tools is false")
	}
	t.Run("an answer", func(t *testing.T) {
		b := sandbox{b, t}
		var got env.ToolRequest
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		r, err := b.Execute(ctx, env.Command{
			Script: "cd /tmp && mini-tool greet 'the world' --loud 2>/tmp/mini-errors; echo code $?; cat /tmp/mini-errors; rm /tmp/mini-errors",
			Tools: &env.Tools{Handle: func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
				if ctx.Value(key{}) != "value" {
					t.Error("the context lacks the values of Execute's context")
				}
				got = r
				return env.ToolResponse{Stdout: []byte("hello\n"), Stderr: []byte("loudly\n"), ExitCode: 42}
			}},
		})
		if err != nil || string(r.Output) != "hello\ncode 42\nloudly\n" {
			t.Errorf("output %q, %v", r.Output, err)
		}
		if strings.Join(got.Args, "|") != "greet|the world|--loud" || got.Dir != "/tmp" || len(got.Stdin) != 0 {
			t.Errorf("request %q in %q with %q", got.Args, got.Dir, got.Stdin)
		}
	})
	t.Run("much", func(t *testing.T) {
		b := sandbox{b, t}
		var got env.ToolRequest
		r := b.runWithTools(func(_ context.Context, r env.ToolRequest) env.ToolResponse {
			got = r
			return env.ToolResponse{Stdout: bytes.Repeat([]byte("o"), env.MaxToolResponse-10), Stderr: []byte("0123456789")}
		}, env.Command{Script: `head -c 120000 /dev/zero | mini-tool x - 2>&1 | tail -c 20`})
		if !bytes.HasSuffix(r.Output, []byte("0123456789")) && !bytes.HasSuffix(r.Output, []byte("ooo")) || len(got.Stdin) != 120_000 {
			t.Errorf("output ends with %.40q, input has %d bytes", r.Output, len(got.Stdin))
		}
		r = b.runWithTools(func(context.Context, env.ToolRequest) env.ToolResponse {
			return env.ToolResponse{Stdout: bytes.Repeat([]byte("o"), env.MaxToolResponse+1)}
		}, env.Command{Script: `mini-tool x 2>/tmp/mini-errors | wc -c; cat /tmp/mini-errors; rm /tmp/mini-errors`})
		count, note, _ := strings.Cut(string(r.Output), "\n")
		n := 0
		if _, err := fmt.Sscan(count, &n); err != nil || n <= env.MaxToolResponse-1000 || n > env.MaxToolResponse || !strings.Contains(note, "cut") {
			t.Errorf("%d bytes of a response that is too long arrived, with the note %q", n, note)
		}
	})
	t.Run("side by side", func(t *testing.T) {
		b := sandbox{b, t}
		const calls = 10
		var barrier sync.WaitGroup
		barrier.Add(calls)
		r := b.runWithTools(func(_ context.Context, r env.ToolRequest) env.ToolResponse {
			barrier.Done()
			barrier.Wait() // until all calls have arrived
			return env.ToolResponse{Stdout: []byte(r.Args[0] + "\n")}
		}, env.Command{Script: fmt.Sprintf(`for i in $(seq %d); do mini-tool $i >/tmp/mini-said-$i & done; wait; for i in $(seq %d); do test $i = $(cat /tmp/mini-said-$i) && echo -n .; done; rm /tmp/mini-said-*`, calls, calls)})
		if string(r.Output) != strings.Repeat(".", calls) {
			t.Errorf("output %q", r.Output)
		}
	})
	t.Run("too many at once", func(t *testing.T) {
		b := sandbox{b, t}
		const calls = 30 // more than may wait, fewer than the connections that the helper accepts at once
		var active, maxActive atomic.Int64
		refused, concurrent := make(chan struct{}), make(chan struct{})
		setRefused := sync.OnceFunc(func() { close(refused) })
		setConcurrent := sync.OnceFunc(func() { close(concurrent) })
		r := b.runWithTools(func(context.Context, env.ToolRequest) env.ToolResponse {
			n := active.Add(1)
			if n > maxActive.Load() {
				maxActive.Store(n)
			}
			if n > 1 {
				setConcurrent()
			}
			<-refused
			<-concurrent // otherwise a handler could end before the next one is scheduled
			active.Add(-1)
			return env.ToolResponse{Stdout: []byte("answered\n")}
		}, env.Command{
			Script: fmt.Sprintf(`for i in $(seq %d); do mini-tool $i >/tmp/mini-many-$i 2>&1 & done
				until test $(cat /tmp/mini-many-* | wc -l) -ge 10; do sleep 0.05; done; echo refused; wait; cat /tmp/mini-many-* | sort | uniq -c | wc -l; grep -l answered /tmp/mini-many-* | wc -l; rm /tmp/mini-many-*`, calls),
			OnOutput: func([]byte) { setRefused() },
		})
		lines := strings.Fields(string(r.Output))
		if len(lines) != 3 || lines[1] != "2" || maxActive.Load() > 20 {
			t.Errorf("output %q, at most %d at once", r.Output, maxActive.Load())
		}
	})
	t.Run("no variables without tools", func(t *testing.T) {
		b := sandbox{b, t}
		before := b.sh("env | grep -i MINI_TOOL; echo $PATH")
		if strings.Contains(before, "MINI_TOOL") {
			t.Errorf("a command without tools has %q", before)
		}
		r := b.runWithTools(func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			in, err := r.Nested.Execute(ctx, env.Command{Script: "env | grep -i MINI_TOOL; echo $PATH"})
			if err != nil {
				t.Error(err)
			}
			return env.ToolResponse{Stdout: in.Output}
		}, env.Command{Script: "mini-tool x"})
		if got := strings.TrimSpace(string(r.Output)); got != before {
			t.Errorf("a nested command without tools has %q, want %q", got, before)
		}
		if after := b.sh("env | grep -i MINI_TOOL; echo $PATH"); after != before {
			t.Errorf("after a command with tools, one without has %q, want %q", after, before)
		}
	})
	t.Run("panic", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.runWithTools(func(context.Context, env.ToolRequest) env.ToolResponse { panic("no idea") }, env.Command{Script: "mini-tool x 2>&1; echo code $?"})
		if !strings.Contains(string(r.Output), "no idea") || !strings.Contains(string(r.Output), "code 1\n") {
			t.Errorf("output %q", r.Output)
		}
	})
	t.Run("another sandbox's token", func(t *testing.T) {
		b, other := sandbox{b, t}, s.start(t)
		asked := false
		var stolen env.Result
		b.runWithTools(func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			if len(r.Args) != 2 {
				asked = true
				return env.ToolResponse{}
			}
			// The socket of this sandbox and the token of the other one; if they may
			// share processes, only the socket.
			script := "MINI_TOOL_SOCKET=" + r.Args[0]
			if s.lacks[OwnProcesses] == "" {
				script += " MINI_TOOL_TOKEN=" + r.Args[1]
			}
			var err error
			stolen, err = other.Execute(ctx, env.Command{Script: script + " mini-tool stolen", Timeout: waitLimit, Tools: &env.Tools{
				Handle: func(context.Context, env.ToolRequest) env.ToolResponse {
					t.Error("the socket accepted the token of another sandbox")
					return env.ToolResponse{}
				},
			}})
			if err != nil {
				t.Error(err)
			}
			return env.ToolResponse{}
		}, env.Command{Script: `mini-tool "$MINI_TOOL_SOCKET" "$MINI_TOOL_TOKEN"`})
		if asked || stolen.ExitCode != 1 {
			t.Errorf("asked %v, exit code %d, output %q", asked, stolen.ExitCode, stolen.Output)
		}
	})
}
