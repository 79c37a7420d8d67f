package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// starved is a sandbox in which the first command needs too much memory.
type starved struct {
	env.Environment
	commands int
}

func (s *starved) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	s.commands++
	r, err := s.Environment.Execute(ctx, c)
	if s.commands == 1 {
		r.OOMKilled = 1
	}
	return r, err
}

// Running out of memory is the command's affair: the model is told, and the
// attempt goes on to its own end.
func TestOutOfMemoryIsObserved(t *testing.T) {
	m := says(bash("echo started; exit 137"), bash(submit))
	a, err := agent.New(config())
	if err != nil {
		t.Fatal(err)
	}
	rec := &memory{}
	out := a.Run(t.Context(), agent.Session{
		Model: m, Environment: &starved{Environment: repository(t)}, Recorder: rec, Task: agent.Task{Text: "do it"},
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
