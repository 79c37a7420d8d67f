//go:build full

package envtest

import (
	"context"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// moreGroups returns the groups that run only with the build tag full.
func moreGroups() []group {
	return []group{
		{"Sizes", sizes, true},
		{"Escapes", singleEscapes, true},
		{"MoreForkBombs", moreForkBombs, true},
		{"NestedForkBombs", nestedForkBombs, true},
		{"MoreMemory", moreMemory, true},
	}
}

// sizes: scripts and outputs of the largest sizes are passed on unchanged.
func sizes(t *testing.T, s suite) {
	b := s.start(t)
	t.Run("script", func(t *testing.T) { sandbox{b, t}.checkScript(env.MaxScript) })
	t.Run("submission", func(t *testing.T) { sandbox{b, t}.checkSubmission(20_000_000) })
	t.Run("sink", func(t *testing.T) { sandbox{b, t}.checkSink(40 << 20) })
}

// singleEscapes: each escape fails also if it is the only one.
func singleEscapes(t *testing.T, s suite) {
	b := s.start(t)
	file := b.tempDir() + "/pid"
	for name, script := range escapes {
		t.Run(name, func(t *testing.T) {
			b := sandbox{b, t}
			checkTimeout(t, b.runUntilTimeout("rm -f $F; "+script+"\nsleep 300", file))
			if b.isAlive(file) {
				t.Error("the process survived")
			}
		})
	}
}

// moreForkBombs: other fork bombs are killed completely, too.
func moreForkBombs(t *testing.T, s suite) {
	s.needs(t, OwnProcesses, ProcessLimit)
	for name, bomb := range bombs {
		for _, withServer := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " beside a server"}[withServer], func(t *testing.T) {
				s.start(t).runBomb(bomb, withServer)
			})
		}
	}
}

// nestedForkBombs: a fork bomb in a nested command is killed, and the outer command
// goes on.
func nestedForkBombs(t *testing.T, s suite) {
	s.needs(t, Tools, OwnProcesses, ProcessLimit)
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			b := s.start(t)
			r := b.runWithTools(func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
				killed := 0
				for timeout := time.Second; killed < 2 && timeout < 2*waitLimit; timeout *= 4 { // a busy machine needs longer to start it
					in, err := r.Nested.Execute(ctx, env.Command{Script: bomb, Env: map[string]string{"F": "/tmp/mini-bomb"}, Timeout: timeout})
					if err != nil || !in.TimedOut || in.Survivors != 0 || in.KilledEarlier {
						t.Errorf("%+v, %v", in, err)
					}
					killed = in.Killed
				}
				if killed < 2 {
					t.Errorf("killed %d", killed)
				}
				return env.ToolResponse{}
			}, env.Command{Script: "mini-tool x; echo on"})
			if string(r.Output) != "on\n" {
				t.Errorf("the outer command: %+v", r)
			}
			if n := b.otherProcesses(); n != "0" {
				t.Errorf("%s processes are left", n)
			}
		})
	}
}

// moreMemory: many small processes use too much memory together.
func moreMemory(t *testing.T, s suite) {
	if s.openSmall == nil {
		t.Skip("no memory limit (see envtest.WithMemory)")
	}
	b := startWith(t, s.openSmall)
	r := b.run(env.Command{Script: `for i in $(seq 60); do head -c 16M /dev/zero | tail -c 16M | (sleep 5; wc -c) & done; wait; echo end`})
	if r.OOMKilled < 1 || r.TimedOut {
		t.Errorf("%d killed, timed out %v", r.OOMKilled, r.TimedOut)
	}
	if got := b.sh("echo on"); got != "on" {
		t.Errorf("next command: %q", got)
	}
}
