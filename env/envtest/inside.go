package envtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// inside: commands run within a command that asks.
func inside(t *testing.T, s suite) {
	s.needs(t, Tools)
	b := s.fresh(t)
	dir := b.folder()
	vars := map[string]string{"F": dir}
	t.Run("a command", func(t *testing.T) {
		b := box{b, t}
		r := b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			if r.Inside.Info().Dir != b.Info().Dir || !r.Inside.Info().Tools {
				t.Errorf("Info is %+v", r.Inside.Info())
			}
			in, err := r.Inside.Execute(ctx, env.Command{Script: "cat $F/seen; cd /; pwd; exit 5", Env: vars})
			if err != nil || in.ExitCode != 5 {
				t.Errorf("%+v, %v", in, err)
			}
			if err := r.Inside.Close(ctx); err != nil {
				t.Error(err)
			}
			in, err = r.Inside.Execute(ctx, env.Command{Script: "sleep 300", Timeout: 300 * time.Millisecond})
			if err != nil || !in.TimedOut || in.Killed < 1 || in.Survivors != 0 || in.Collateral {
				t.Errorf("%+v, %v", in, err)
			}
			in, err = r.Inside.Execute(ctx, env.Command{Script: "echo again"})
			if err != nil || string(in.Output) != "again\n" || len(in.Background) != 0 {
				t.Errorf("%+v, %v", in, err)
			}
			return env.ToolAnswer{Output: in.Output}
		}, env.Command{Script: "echo seen >$F/seen; mini-tool x; echo on", Env: vars})
		if string(r.Output) != "again\non\n" || r.ExitCode != 0 || len(r.Background) != 0 || r.TimedOut {
			t.Errorf("%+v", r)
		}
	})
	t.Run("long output", func(t *testing.T) {
		b := box{b, t}
		b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			in, err := r.Inside.Execute(ctx, env.Command{Script: "seq 100000"})
			if err != nil || in.Bytes != 588_895 || !in.Truncated {
				t.Errorf("%d bytes, truncated %v, %v", in.Bytes, in.Truncated, err)
			}
			return env.ToolAnswer{}
		}, env.Command{Script: "mini-tool x"})
	})
	t.Run("its timeout is its own", func(t *testing.T) {
		for name, script := range escapes {
			t.Run(name, func(t *testing.T) {
				b := box{b, t}
				// Beside it: a child of the asking command, and an orphan in a session
				// of its own that is born while it runs.
				r := b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
					in, err := r.Inside.Execute(ctx, env.Command{
						Script: "rm -f $F; " + script + "\nuntil test -s $F && test -s " + dir + "/orphan; do sleep 0.01; done; touch " + dir + "/ready; sleep 300",
						Env:    map[string]string{"F": dir + "/victim"}, Timeout: time.Second,
					})
					if err != nil || !in.TimedOut || in.Survivors != 0 || in.Collateral {
						t.Errorf("%+v, %v", in, err)
					}
					return env.ToolAnswer{}
				}, env.Command{Env: vars, Script: `rm -f $F/orphan $F/ready; (sleep 0.2; setsid bash -c 'echo $$ >$F/orphan; exec sleep 300' >/dev/null 2>&1 &)
					setsid sleep 300 & child=$!; mini-tool x
					for pid in $child $(cat $F/orphan); do kill -0 $pid && echo alive; kill -9 $pid; done`})
				if string(r.Output) != "alive\nalive\n" {
					t.Errorf("of the asking command's own two processes: %q", r.Output)
				}
				if b.runs(dir + "/victim") {
					t.Error("the process survived")
				}
			})
		}
	})
	t.Run("side by side", func(t *testing.T) {
		b := box{b, t}
		r := b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			c := env.Command{Script: "sleep 2; echo well", Timeout: patience}
			if r.Args[0] == "bad" {
				c = env.Command{Script: "sleep 300 & setsid sleep 300 & sleep 300", Timeout: time.Second}
			}
			in, err := r.Inside.Execute(ctx, c)
			if err != nil || in.TimedOut != (r.Args[0] == "bad") || len(in.Background) != 0 {
				t.Errorf("%s: %+v, %v", r.Args[0], in, err)
			}
			return env.ToolAnswer{Output: in.Output}
		}, env.Command{Script: "for i in 1 2 3; do mini-tool good & mini-tool bad & done; wait; echo on"})
		if string(r.Output) != "well\nwell\nwell\non\n" || len(r.Background) != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("what it leaves running", func(t *testing.T) {
		b := box{b, t}
		r := b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			in, err := r.Inside.Execute(ctx, env.Command{Script: "sleep 300 >/dev/null 2>&1 & echo $!"})
			if err != nil || len(in.Background) != 1 {
				t.Errorf("%+v, %v", in, err)
			}
			if in, err := r.Inside.Execute(ctx, env.Command{Script: "sleep 300", Timeout: 200 * time.Millisecond}); err != nil || !in.TimedOut || in.Collateral {
				t.Errorf("%+v, %v", in, err)
			}
			return env.ToolAnswer{Output: in.Output}
		}, env.Command{Script: "pid=$(mini-tool x); kill -0 $pid && echo alive; setsid sleep 300 >/dev/null 2>&1 & "})
		if string(r.Output) != "alive\n" || len(r.Background) != 2 {
			t.Errorf("output %q, left running %v", r.Output, r.Background)
		}
		for _, p := range r.Background {
			b.sh(fmt.Sprintf("kill -9 %d", p.PID))
		}
	})
	for how, end := range map[string]func(*testing.T, box, env.Command) env.Result{
		"timeout of the asking one kills both": func(t *testing.T, b box, c env.Command) env.Result {
			c.Timeout = 2 * time.Second
			r := b.run(c)
			checkTimeout(t, r)
			return r
		},
		"cancel of the asking one kills both": func(t *testing.T, b box, c env.Command) env.Result {
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			stop := time.AfterFunc(2*time.Second, func() { cancel(enough) })
			defer stop.Stop()
			c.Timeout = patience
			r, err := b.Execute(ctx, c)
			if !errors.Is(err, enough) {
				t.Errorf("error %v", err)
			}
			return r
		},
		"end of the asking one ends both": func(t *testing.T, b box, c env.Command) env.Result {
			c.Script = "(" + c.Script + ") >/dev/null 2>&1 & until test -s $F/inner; do sleep 0.01; done; kill %1; echo over"
			r := b.run(c)
			if string(r.Output) != "over\n" || r.TimedOut || r.ExitCode != 0 {
				t.Errorf("%+v", r)
			}
			return r
		},
	} {
		t.Run(how, func(t *testing.T) {
			b := box{b, t}
			var failed error
			var kept env.Environment
			b.sh("rm -f " + dir + "/inner")
			end(t, b, env.Command{
				Script: "mini-tool x; sleep 300", Env: vars,
				Tools: &env.Tools{Answer: func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
					kept = r.Inside
					_, failed = r.Inside.Execute(context.WithoutCancel(ctx), env.Command{Script: "setsid bash -c 'echo $$ >$F/inner; exec sleep 300' & sleep 300", Env: vars, Timeout: time.Minute})
					return env.ToolAnswer{}
				}},
			})
			if !errors.Is(failed, env.ErrClosed) {
				t.Errorf("the command inside ended with %v", failed)
			}
			if b.runs(dir + "/inner") {
				t.Error("what ran inside lives on")
			}
			if _, err := kept.Execute(t.Context(), env.Command{Script: "echo no >$F/late", Env: vars}); !errors.Is(err, env.ErrClosed) {
				t.Errorf("a command inside of one that is over: %v", err)
			}
			b.sh("! test -e " + dir + "/late")
		})
	}
	t.Run("caller killed", func(t *testing.T) {
		b := box{b, t}
		var failed error
		b.sh("rm -f " + dir + "/inner")
		r := b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			_, failed = r.Inside.Execute(ctx, env.Command{Script: "echo $$ >$F/inner; exec sleep 300", Env: vars, Timeout: time.Minute})
			return env.ToolAnswer{}
		}, env.Command{Script: "timeout 1 mini-tool x; echo $?", Env: vars})
		if string(r.Output) != "124\n" || failed == nil {
			t.Errorf("output %q, error %v", r.Output, failed)
		}
		if b.runs(dir + "/inner") {
			t.Error("what ran inside lives on")
		}
	})
	t.Run("depth", func(t *testing.T) {
		b := box{b, t}
		var mu sync.Mutex
		deepest, refused := 0, ""
		var answer func(depth int) tool
		answer = func(depth int) tool {
			return func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
				in, err := r.Inside.Execute(ctx, env.Command{Script: fmt.Sprintf("echo %d; mini-tool x", depth), Tools: &env.Tools{Answer: answer(depth + 1)}})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if in.Failure == "" {
					deepest = max(deepest, depth)
				} else {
					refused = in.Failure
				}
				return env.ToolAnswer{Output: in.Output, ExitCode: max(0, in.ExitCode)}
			}
		}
		r := b.asks(answer(1), env.Command{Script: "mini-tool x"})
		if want := "1\n2\n3\n4\n5\n6\n7\n8\n"; string(r.Output) != want || deepest != 8 || refused == "" {
			t.Errorf("output %q, deepest %d, refused with %q", r.Output, deepest, refused)
		}
	})
	t.Run("clock", func(t *testing.T) {
		b := box{b, t}
		// The time of what runs inside is the asking one's, too.
		began := time.Now()
		r := b.asks(func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			<-time.After(3 * time.Second) // does not count
			_, _ = r.Inside.Execute(ctx, env.Command{Script: "sleep 300", Timeout: time.Minute})
			return env.ToolAnswer{}
		}, env.Command{Script: "mini-tool x", Timeout: 2 * time.Second})
		checkTimeout(t, r)
		if took := time.Since(began); took < 5*time.Second || took > 5*time.Second+patience/2 {
			t.Errorf("it took %v, want 5 s", took)
		}
	})
	t.Run("nothing survives", func(t *testing.T) {
		s.needs(t, OwnProcesses)
		if n := (box{b, t}).others(); n != "0" {
			t.Errorf("%s processes are left", strings.TrimSpace(n))
		}
	})
}
