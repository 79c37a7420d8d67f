package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// starved is a sandbox without the memory for one command.
type starved struct {
	env.Environment
	script string
}

func (s starved) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	r, err := s.Environment.Execute(ctx, c)
	if strings.TrimSpace(c.Script) == s.script {
		r.OOMKilled = 1
	}
	return r, err
}

// Running out of memory is the command's affair: the model is told, and the
// attempt goes on to its own end.
func TestOutOfMemoryIsObserved(t *testing.T) {
	const big = "echo started; exit 137"
	m := says(bash(big), bash(submit))
	a, err := agent.New(config())
	if err != nil {
		t.Fatal(err)
	}
	rec := &memory{}
	out := a.Run(t.Context(), agent.Session{
		Model: m, Environment: starved{repository(t), big}, Recorder: rec, Task: agent.Task{Text: "do it"},
	})
	if out.Class != trajectories.Submitted {
		t.Fatalf("outcome %+v", out)
	}
	last := m.seen[1][len(m.seen[1])-1].Content
	for _, want := range []string{"[137] started", "The sandbox ran out of memory: 1 process was killed by the kernel."} {
		if !strings.Contains(last, want) {
			t.Errorf("the model is told %q, want %q in it", last, want)
		}
	}
	recorded := 0
	for _, r := range rec.records {
		if strings.Contains(string(r.Data), `"oom_killed":1`) {
			recorded++
		}
	}
	if recorded != 1 {
		t.Errorf("%d records say so", recorded)
	}
}
