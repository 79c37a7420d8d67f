package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// tool answers a request.
type tool func(ctx context.Context, r env.ToolRequest) env.ToolAnswer

// asks runs a command that may ask.
func (b box) asks(answer tool, c env.Command) env.Result {
	b.t.Helper()
	c.Tools = &env.Tools{Answer: answer}
	return b.run(c)
}

// tooling: commands ask, and get what the host answers.
func tooling(t *testing.T, s suite) {
	s.needs(t, Tools)
	b := s.fresh(t)
	if !b.Info().Tools {
		t.Error("Info does not say that commands can ask")
	}
	t.Run("an answer", func(t *testing.T) {
		b := box{b, t}
		var got env.ToolRequest
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		r, err := b.Execute(ctx, env.Command{
			Script: "cd /tmp && mini-tool greet 'the world' --loud 2>/tmp/mini-errors; echo code $?; cat /tmp/mini-errors; rm /tmp/mini-errors",
			Tools: &env.Tools{Answer: func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
				if ctx.Value(key{}) != "value" {
					t.Error("the context has not the values of Execute's")
				}
				got = r
				return env.ToolAnswer{Output: []byte("hello\n"), Errors: []byte("loudly\n"), ExitCode: 42}
			}},
		})
		if err != nil || string(r.Output) != "hello\ncode 42\nloudly\n" {
			t.Errorf("output %q, %v", r.Output, err)
		}
		if strings.Join(got.Args, "|") != "greet|the world|--loud" || got.Dir != "/tmp" || len(got.Input) != 0 {
			t.Errorf("request %q in %q with %q", got.Args, got.Dir, got.Input)
		}
	})
	t.Run("any bytes", func(t *testing.T) {
		b := box{b, t}
		var got env.ToolRequest
		r := b.asks(func(_ context.Context, r env.ToolRequest) env.ToolAnswer {
			got = r
			return env.ToolAnswer{Output: []byte("\x00\xff\n\xc3")}
		}, env.Command{Script: `printf 'i\0\377' | mini-tool $'\xff\x01' '' 'a b' $'\n' -`})
		if string(r.Output) != "\x00\xff\n\xc3" {
			t.Errorf("output %q", r.Output)
		}
		if want := []string{"\xff\x01", "", "a b", "\n", "-"}; strings.Join(got.Args, "|") != strings.Join(want, "|") || string(got.Input) != "i\x00\xff" {
			t.Errorf("arguments %q, input %q", got.Args, got.Input)
		}
	})
	t.Run("much", func(t *testing.T) {
		b := box{b, t}
		var got env.ToolRequest
		r := b.asks(func(_ context.Context, r env.ToolRequest) env.ToolAnswer {
			got = r
			return env.ToolAnswer{Output: bytes.Repeat([]byte("o"), env.MaxToolAnswer-10), Errors: []byte("0123456789")}
		}, env.Command{Script: `head -c 120000 /dev/zero | mini-tool x - 2>&1 | tail -c 20`})
		if !bytes.HasSuffix(r.Output, []byte("0123456789")) && !bytes.HasSuffix(r.Output, []byte("ooo")) || len(got.Input) != 120_000 {
			t.Errorf("output ends with %.40q, input has %d bytes", r.Output, len(got.Input))
		}
		r = b.asks(func(context.Context, env.ToolRequest) env.ToolAnswer {
			return env.ToolAnswer{Output: bytes.Repeat([]byte("o"), env.MaxToolAnswer+1)}
		}, env.Command{Script: `mini-tool x 2>/tmp/mini-errors | wc -c; cat /tmp/mini-errors; rm /tmp/mini-errors`})
		count, word, _ := strings.Cut(string(r.Output), "\n")
		n := 0
		if _, err := fmt.Sscan(count, &n); err != nil || n <= env.MaxToolAnswer-1000 || n > env.MaxToolAnswer || !strings.Contains(word, "cut") {
			t.Errorf("of an answer that is too long %d bytes came, with the word %q", n, word)
		}
		asked := false
		r = b.asks(func(context.Context, env.ToolRequest) env.ToolAnswer {
			asked = true
			return env.ToolAnswer{}
		}, env.Command{Script: `head -c 200000 /dev/zero | mini-tool x -`})
		if asked || r.ExitCode == 0 || len(r.Output) == 0 {
			t.Errorf("a request that is too long: asked %v, exit code %d, output %.200q", asked, r.ExitCode, r.Output)
		}
	})
	t.Run("side by side", func(t *testing.T) {
		b := box{b, t}
		const crowd = 10
		var meeting sync.WaitGroup
		meeting.Add(crowd)
		r := b.asks(func(_ context.Context, r env.ToolRequest) env.ToolAnswer {
			meeting.Done()
			meeting.Wait() // until all are here
			return env.ToolAnswer{Output: []byte(r.Args[0] + "\n")}
		}, env.Command{Script: fmt.Sprintf(`for i in $(seq %d); do mini-tool $i >/tmp/mini-said-$i & done; wait; for i in $(seq %d); do test $i = $(cat /tmp/mini-said-$i) && echo -n .; done; rm /tmp/mini-said-*`, crowd, crowd)})
		if string(r.Output) != strings.Repeat(".", crowd) {
			t.Errorf("output %q", r.Output)
		}
	})
	t.Run("too many at once", func(t *testing.T) {
		b := box{b, t}
		const crowd = 40
		var at, most atomic.Int64
		enough := make(chan struct{})
		r := b.asks(func(_ context.Context, r env.ToolRequest) env.ToolAnswer {
			if r.Args[0] == "enough" {
				return env.ToolAnswer{}
			}
			if n := at.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-enough
			at.Add(-1)
			return env.ToolAnswer{Output: []byte("answered\n")}
		}, env.Command{
			Script: fmt.Sprintf(`for i in $(seq %d); do mini-tool $i >/tmp/mini-many-$i 2>&1 & done
				until test $(cat /tmp/mini-many-* | wc -l) -ge 20; do sleep 0.05; done; echo refused; wait; cat /tmp/mini-many-* | sort | uniq -c | wc -l; grep -l answered /tmp/mini-many-* | wc -l; rm /tmp/mini-many-*`, crowd),
			Watch: func() func([]byte) {
				var once sync.Once
				return func([]byte) { once.Do(func() { close(enough) }) }
			}(),
		})
		lines := strings.Fields(string(r.Output))
		if len(lines) != 3 || lines[1] != "2" || most.Load() > 20 || most.Load() < 2 {
			t.Errorf("output %q, at most %d at once", r.Output, most.Load())
		}
	})
	t.Run("no tools, no sign of them", func(t *testing.T) {
		b := box{b, t}
		before := b.sh("env | grep -i MINI_TOOL; echo $PATH")
		if strings.Contains(before, "MINI_TOOL") {
			t.Errorf("a command without tools has %q", before)
		}
		r := b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			in, err := r.Inside.Execute(ctx, env.Command{Script: "env | grep -i MINI_TOOL; echo $PATH"})
			if err != nil {
				t.Error(err)
			}
			return env.ToolAnswer{Output: in.Output}
		}, env.Command{Script: "mini-tool x"})
		if got := strings.TrimSpace(string(r.Output)); got != before {
			t.Errorf("inside of a command with tools, one without has %q, want %q", got, before)
		}
		if after := b.sh("env | grep -i MINI_TOOL; echo $PATH"); after != before {
			t.Errorf("after one with tools, one without has %q, want %q", after, before)
		}
	})
	t.Run("panic", func(t *testing.T) {
		b := box{b, t}
		r := b.asks(func(context.Context, env.ToolRequest) env.ToolAnswer { panic("no idea") }, env.Command{Script: "mini-tool x 2>&1; echo code $?"})
		if !strings.Contains(string(r.Output), "no idea") || !strings.Contains(string(r.Output), "code 1\n") {
			t.Errorf("output %q", r.Output)
		}
	})
	t.Run("forged token", func(t *testing.T) {
		b := box{b, t}
		asked := false
		r := b.asks(func(context.Context, env.ToolRequest) env.ToolAnswer {
			asked = true
			return env.ToolAnswer{}
		}, env.Command{Script: `for forged in '' x "${MINI_TOOL_TOKEN}x" "${MINI_TOOL_TOKEN%?}" "${MINI_TOOL_TOKEN,,}" ABCDEFGHIJKLMNOPQRSTUVWXYZ; do MINI_TOOL_TOKEN=$forged mini-tool x >/dev/null 2>&1; echo $?; done; MINI_TOOL_TOKEN=x mini-tool x`})
		if asked || !strings.HasPrefix(string(r.Output), strings.Repeat("1\n", 6)) || len(r.Output) < 20 || r.ExitCode != 1 {
			t.Errorf("asked %v, exit code %d, output %q", asked, r.ExitCode, r.Output)
		}
	})
	t.Run("another sandbox's token", func(t *testing.T) {
		b, other := box{b, t}, s.fresh(t)
		asked := false
		var stolen env.Result
		b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			if len(r.Args) != 2 {
				asked = true
				return env.ToolAnswer{}
			}
			// The socket of this one and the token of the other one; where they have
			// nothing in common, both of this one.
			script := "MINI_TOOL_SOCKET=" + r.Args[0]
			if s.lacks[OwnProcesses] == "" {
				script += " MINI_TOOL_TOKEN=" + r.Args[1]
			}
			var err error
			stolen, err = other.Execute(ctx, env.Command{Script: script + " mini-tool stolen", Timeout: patience, Tools: &env.Tools{
				Answer: func(context.Context, env.ToolRequest) env.ToolAnswer {
					t.Error("the token was good at the other sandbox's socket")
					return env.ToolAnswer{}
				},
			}})
			if err != nil {
				t.Error(err)
			}
			return env.ToolAnswer{}
		}, env.Command{Script: `mini-tool "$MINI_TOOL_SOCKET" "$MINI_TOOL_TOKEN"`})
		if asked || stolen.ExitCode != 1 {
			t.Errorf("asked %v, exit code %d, output %q", asked, stolen.ExitCode, stolen.Output)
		}
	})
	t.Run("after the end", func(t *testing.T) {
		b := box{b, t}
		dir := b.folder()
		asked := false
		none := func(context.Context, env.ToolRequest) env.ToolAnswer {
			asked = true
			return env.ToolAnswer{}
		}
		b.asks(none, env.Command{Script: `(until test -e $F/ended; do sleep 0.02; done; mini-tool x >$F/said 2>&1; echo code $? >>$F/said; touch $F/done) >/dev/null 2>&1 &`, Env: map[string]string{"F": dir}})
		r := b.asks(none, env.Command{Script: `touch $F/ended; until test -e $F/done; do sleep 0.02; done; cat $F/said`, Env: map[string]string{"F": dir}})
		if asked || !strings.HasSuffix(string(r.Output), "code 1\n") || len(r.Output) < 20 {
			t.Errorf("asked %v, output %q", asked, r.Output)
		}
	})
	t.Run("a request at the end", func(t *testing.T) {
		b := box{b, t}
		began := make(chan struct{})
		var cause error
		r := b.asks(func(ctx context.Context, _ env.ToolRequest) env.ToolAnswer {
			close(began)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return env.ToolAnswer{}
		}, env.Command{Script: `mini-tool x >/dev/null 2>&1 & sleep 0.5; echo over`})
		<-began
		if string(r.Output) != "over\n" || !errors.Is(cause, env.ErrClosed) {
			t.Errorf("output %q, cause %v", r.Output, cause)
		}
	})
	t.Run("caller killed", func(t *testing.T) {
		b := box{b, t}
		ended := 0
		r := b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			if r.Args[0] == "wait" {
				<-ctx.Done()
				ended++
			}
			return env.ToolAnswer{Output: []byte("on\n")}
		}, env.Command{Script: `timeout 0.5 mini-tool wait; echo $?; mini-tool wait & sleep 0.3; kill -9 $!; wait 2>/dev/null; mini-tool go`})
		// What bash says of the killed one may come before or after the last answer.
		if !strings.HasPrefix(string(r.Output), "124\n") || !strings.Contains(string(r.Output), "\non\n") || ended != 2 {
			t.Errorf("output %q, %d of 2 contexts ended", r.Output, ended)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		b := box{b, t}
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		_, err := b.Execute(ctx, env.Command{Script: "mini-tool x", Timeout: patience, Tools: &env.Tools{
			Answer: func(ctx context.Context, _ env.ToolRequest) env.ToolAnswer {
				cancel(enough)
				<-ctx.Done()
				return env.ToolAnswer{}
			},
		}})
		if !errors.Is(err, enough) {
			t.Errorf("error %v", err)
		}
		b.sh("true") // the sandbox lives
	})
	t.Run("clock", func(t *testing.T) {
		b := box{b, t}
		slow := func(context.Context, env.ToolRequest) env.ToolAnswer {
			<-time.After(4 * time.Second) // it is about real time
			return env.ToolAnswer{}
		}
		// Stands still for four seconds of the tool's, with three for the rest.
		if r := b.asks(slow, env.Command{Script: "mini-tool x; echo on", Timeout: 3 * time.Second}); r.TimedOut || string(r.Output) != "on\n" {
			t.Errorf("timed out %v, output %q", r.TimedOut, r.Output)
		}
		began := time.Now()
		r := b.asks(slow, env.Command{Script: "mini-tool x; echo on; sleep 300", Timeout: 2 * time.Second})
		checkTimeout(t, r)
		if took := time.Since(began); took < 6*time.Second || took > 6*time.Second+patience/2 {
			t.Errorf("it took %v, want 6 s", took)
		}
	})
}
