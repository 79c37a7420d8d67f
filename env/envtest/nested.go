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

// nestedCommands: commands run nested in a command that calls a tool.
func nestedCommands(t *testing.T, s suite) {
	s.needs(t, Tools)
	b := s.start(t)
	dir := b.tempDir()
	vars := map[string]string{"F": dir}
	t.Run("a command", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.runWithTools(func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			if r.Nested.Info().Dir != b.Info().Dir || !r.Nested.Info().Tools {
				t.Errorf("Info is %+v", r.Nested.Info())
			}
			in, err := r.Nested.Execute(ctx, env.Command{Script: "cat $F/seen; cd /; pwd; exit 5", Env: vars})
			if err != nil || in.ExitCode != 5 {
				t.Errorf("%+v, %v", in, err)
			}
			if err := r.Nested.Close(ctx); err != nil {
				t.Error(err)
			}
			in, err = r.Nested.Execute(ctx, env.Command{Script: "sleep 300", Timeout: 300 * time.Millisecond})
			if err != nil || !in.TimedOut || in.Killed < 1 || in.Survivors != 0 || in.KilledEarlier {
				t.Errorf("%+v, %v", in, err)
			}
			in, err = r.Nested.Execute(ctx, env.Command{Script: "echo again"})
			if err != nil || string(in.Output) != "again\n" || len(in.Background) != 0 {
				t.Errorf("%+v, %v", in, err)
			}
			return env.ToolResponse{Stdout: in.Output}
		}, env.Command{Script: "echo seen >$F/seen; mini-tool x; echo on", Env: vars})
		if string(r.Output) != "again\non\n" || r.ExitCode != 0 || len(r.Background) != 0 || r.TimedOut {
			t.Errorf("%+v", r)
		}
	})
	t.Run("its timeout is its own", func(t *testing.T) {
		b := sandbox{b, t}
		// Besides the nested command there are a child of the outer command, and an
		// orphan in its own session that is started while the nested command runs.
		r := b.runWithTools(func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			for timeout := 600 * time.Millisecond; timeout < 2*waitLimit; timeout *= 4 {
				in, err := r.Nested.Execute(ctx, env.Command{
					Script: "touch ${F%/*}/begun; until test -s ${F%/*}/orphan; do sleep 0.01; done\n" + allEscapes("exec"),
					Env:    map[string]string{"F": dir + "/ready"}, Timeout: timeout,
				})
				if err != nil || !in.TimedOut || in.Survivors != 0 || in.KilledEarlier {
					t.Errorf("%+v, %v", in, err)
				}
				in, err = r.Nested.Execute(ctx, env.Command{Script: "test -s $F/ready", Env: vars})
				if err != nil || in.ExitCode == 0 {
					break // otherwise the timeout was too short for a busy machine
				}
			}
			return env.ToolResponse{}
		}, env.Command{Env: vars, Script: `rm -f $F/orphan $F/begun $F/ready
			{ until test -e $F/begun; do sleep 0.01; done; setsid bash -c 'echo $$ >$F/orphan; exec sleep 300' & } >/dev/null 2>&1 &
			setsid sleep 300 & child=$!; mini-tool x
			for pid in $child $(cat $F/orphan); do kill -0 $pid && echo alive; kill -9 $pid; done`})
		if string(r.Output) != "alive\nalive\n" {
			t.Errorf("the two processes of the outer command: %q", r.Output)
		}
		if got := b.living(dir + "/pid-*"); got != "" {
			t.Errorf("processes survived: %s", got)
		}
		b.sh("test -s " + dir + "/ready")
	})
	t.Run("side by side", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.runWithTools(func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			// The good ones end after the bad ones have been killed.
			c := env.Command{Script: "until test $(ls $F | grep -c over-) = 3; do sleep 0.02; done; echo well", Env: vars, Timeout: 4 * waitLimit}
			isBad := r.Args[0] == "bad"
			if isBad {
				c = env.Command{Script: "sleep 300 & setsid sleep 300 & sleep 300", Timeout: 200 * time.Millisecond}
			}
			in, err := r.Nested.Execute(ctx, c)
			if err != nil || in.TimedOut != isBad || len(in.Background) != 0 {
				t.Errorf("%s: %+v, %v", r.Args[0], in, err)
			}
			if isBad {
				if _, err := r.Nested.Execute(ctx, env.Command{Script: "touch $F/over-" + r.Args[1], Env: vars}); err != nil {
					t.Error(err)
				}
			}
			return env.ToolResponse{Stdout: in.Output}
		}, env.Command{Script: "for i in 1 2 3; do mini-tool good $i & mini-tool bad $i & done; wait; echo on"})
		if string(r.Output) != "well\nwell\nwell\non\n" || len(r.Background) != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("what it leaves running", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.runWithTools(func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			in, err := r.Nested.Execute(ctx, env.Command{Script: "sleep 300 >/dev/null 2>&1 & echo $!"})
			if err != nil || len(in.Background) != 1 {
				t.Errorf("%+v, %v", in, err)
			}
			if in, err := r.Nested.Execute(ctx, env.Command{Script: "sleep 300", Timeout: 200 * time.Millisecond}); err != nil || !in.TimedOut || in.KilledEarlier {
				t.Errorf("%+v, %v", in, err)
			}
			return env.ToolResponse{Stdout: in.Output}
		}, env.Command{Script: "pid=$(mini-tool x); kill -0 $pid && echo alive; setsid sleep 300 >/dev/null 2>&1 & "})
		if string(r.Output) != "alive\n" || len(r.Background) != 2 {
			t.Errorf("output %q, left running %v", r.Output, r.Background)
		}
		// It survives later commands, as background processes of the outer command do.
		checkTimeout(t, b.run(env.Command{Script: "setsid sleep 300 & sleep 300", Timeout: 300 * time.Millisecond}))
		for _, p := range r.Background {
			b.sh(fmt.Sprintf("kill -9 %d", p.PID))
		}
	})
	for name, end := range map[string]func(*testing.T, sandbox, time.Duration, env.Command){
		"timeout of the outer command kills both": func(t *testing.T, b sandbox, limit time.Duration, c env.Command) {
			c.Timeout = limit
			checkTimeout(t, b.run(c))
		},
		"cancel of the outer command kills both": func(t *testing.T, b sandbox, _ time.Duration, c env.Command) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := errors.New("enough")
			c.OnOutput = func([]byte) { cancel(cause) }
			c.Timeout = 4 * waitLimit
			if _, err := b.Execute(ctx, c); !errors.Is(err, cause) {
				t.Errorf("error %v", err)
			}
		},
		"end of the outer command ends both": func(t *testing.T, b sandbox, _ time.Duration, c env.Command) {
			c.Script = "(" + c.Script + ") >/dev/null 2>&1 & until test -s $F/inner; do sleep 0.01; done; kill %1; echo over"
			r := b.run(c)
			if string(r.Output) != "over\n" || r.TimedOut || r.ExitCode != 0 {
				t.Errorf("%+v", r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := sandbox{b, t}
			var nestedErr error
			var nested env.Environment
			b.sh("rm -f " + dir + "/inner")
			c := env.Command{
				Script: "{ until test -s $F/inner; do sleep 0.01; done; echo begun; } & mini-tool x; sleep 300", Env: vars,
				Tools: &env.Tools{Handle: func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
					nested = r.Nested
					_, nestedErr = r.Nested.Execute(context.WithoutCancel(ctx), env.Command{Script: "setsid bash -c 'echo $$ >$F/inner; exec sleep 300' & sleep 300", Env: vars, Timeout: time.Minute})
					return env.ToolResponse{}
				}},
			}
			// On a busy machine it retries with a longer limit if the nested command did
			// not start in time.
			for limit := 500 * time.Millisecond; ; limit *= 4 {
				end(t, b, limit, c)
				if b.sh("test -s "+dir+"/inner && echo started || echo missing") == "started" || limit > waitLimit {
					break
				}
			}
			if !errors.Is(nestedErr, env.ErrClosed) {
				t.Errorf("the nested command ended with %v", nestedErr)
			}
			if b.isAlive(dir + "/inner") {
				t.Error("the nested command is still running")
			}
			if _, err := nested.Execute(t.Context(), env.Command{Script: "echo no >$F/late", Env: vars}); !errors.Is(err, env.ErrClosed) {
				t.Errorf("a nested command after the end of the outer one: %v", err)
			}
			b.sh("! test -e " + dir + "/late")
		})
	}
	t.Run("caller killed", func(t *testing.T) {
		b := sandbox{b, t}
		var nestedErr error
		b.sh("rm -f " + dir + "/inner")
		r := b.runWithTools(func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			_, nestedErr = r.Nested.Execute(ctx, env.Command{Script: "echo $$ >$F/inner; exec sleep 300", Env: vars, Timeout: time.Minute})
			return env.ToolResponse{}
		}, env.Command{Script: "mini-tool x & until test -s $F/inner; do sleep 0.01; done; kill -9 $!; wait $!; echo $?", Env: vars})
		if !strings.HasSuffix(string(r.Output), "137\n") || nestedErr == nil {
			t.Errorf("output %q, error %v", r.Output, nestedErr)
		}
		if b.isAlive(dir + "/inner") {
			t.Error("the nested command is still running")
		}
	})
	t.Run("depth", func(t *testing.T) {
		b := sandbox{b, t}
		var mu sync.Mutex
		deepest, refused := 0, ""
		var answer func(depth int) toolHandler
		answer = func(depth int) toolHandler {
			return func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
				in, err := r.Nested.Execute(ctx, env.Command{Script: fmt.Sprintf("echo %d; mini-tool x", depth), Tools: &env.Tools{Handle: answer(depth + 1)}})
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
				return env.ToolResponse{Stdout: in.Output, ExitCode: max(0, in.ExitCode)}
			}
		}
		r := b.runWithTools(answer(1), env.Command{Script: "mini-tool x"})
		if want := "1\n2\n3\n4\n5\n6\n7\n8\n"; string(r.Output) != want || deepest != 8 || refused == "" {
			t.Errorf("output %q, deepest %d, refused with %q", r.Output, deepest, refused)
		}
	})
	t.Run("clock", func(t *testing.T) {
		b := sandbox{b, t}
		// The run time of a nested command counts for the outer one, too. The time of the
		// tool does not.
		for limit := 500 * time.Millisecond; ; limit *= 4 { // a busy machine needs longer to call the tool
			called := false
			started := time.Now()
			r := b.runWithTools(func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
				called = true
				<-time.After(limit)
				_, _ = r.Nested.Execute(ctx, env.Command{Script: "sleep 300", Timeout: 4 * waitLimit})
				return env.ToolResponse{}
			}, env.Command{Script: "mini-tool x", Timeout: limit})
			checkTimeout(t, r)
			if took := time.Since(started); called && took < 2*limit {
				t.Errorf("it took %v, want %v", took, 2*limit)
			}
			if called || limit > waitLimit {
				break
			}
		}
	})
	t.Run("nothing survives", func(t *testing.T) {
		s.needs(t, OwnProcesses)
		if n := (sandbox{b, t}).otherProcesses(); n != "0" {
			t.Errorf("%s processes are left", strings.TrimSpace(n))
		}
	})
}
