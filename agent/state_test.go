package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// stating is a sandbox that tells when the state of its files is taken.
type stating struct {
	env.Environment
	begun, taken chan struct{}
	hangs        bool // until it is cancelled
	cancelled    int
}

func (s *stating) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if !strings.HasSuffix(strings.TrimSpace(c.Script), `emit exact "$tree"`) { // as no other script ends
		return s.Environment.Execute(ctx, c)
	}
	if s.hangs && s.cancelled == 0 {
		s.cancelled++
		close(s.begun)
		<-ctx.Done()
		return env.Result{ExitCode: -1}, context.Cause(ctx)
	}
	res, err := s.Environment.Execute(ctx, c)
	s.taken <- struct{}{}
	return res, err
}

// patient answers when the state was taken.
type patient struct {
	*script
	waits <-chan struct{}
}

func (p patient) Query(ctx context.Context, m []model.Message) (model.Reply, error) {
	<-p.waits
	return p.script.Query(ctx, m)
}

// trees are those of the calls on record, and the one of the diff at the end.
func trees(t *testing.T, rec *memory) (calls []string, last string) {
	t.Helper()
	for _, r := range rec.records {
		var d struct {
			Tree string `json:"tree"`
		}
		if r.Type != trajectories.TypeCall && r.Type != trajectories.TypeDiff {
			continue
		}
		if err := json.Unmarshal(r.Data, &d); err != nil {
			t.Fatal(err)
		}
		if last = d.Tree; r.Type == trajectories.TypeCall {
			calls = append(calls, d.Tree)
		}
	}
	return calls, last
}

// The state of the files is on record with the call after it, where that leaves the
// time.
func TestStateBesideACall(t *testing.T) {
	defer agent.StateAtOnce()()
	tests := map[string]struct {
		hangs bool
		taken []bool // with each call
	}{
		"there is time":        {false, []bool{true, true, true}},
		"the model is quicker": {true, []bool{false, false}}, // it is left out once after that
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			box := &stating{Environment: repository(t), begun: make(chan struct{}), taken: make(chan struct{}, 9), hangs: tt.hangs}
			m := patient{says("```bash\necho new > added\n```", "```bash\ntrue\n```", "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"), box.taken}
			if tt.hangs {
				m.waits = box.begun
			}
			a, err := agent.New(agent.Config{
				SystemTemplate: "s", InstanceTemplate: "t", ObservationTemplate: "o", FormatErrorTemplate: "f",
				Submission: agent.SubmissionPatch, StepLimit: 9,
			})
			if err != nil {
				t.Fatal(err)
			}
			rec := begun()
			out := a.Run(t.Context(), agent.Session{Model: m, Environment: box, Recorder: rec, Task: agent.Task{Text: "task"}, States: true})
			if out.Class != trajectories.Submitted {
				t.Fatalf("%+v", out)
			}
			calls, last := trees(t, rec)
			for i, taken := range tt.taken {
				if (calls[i] != "") != taken {
					t.Errorf("call %d: tree %q", i+1, calls[i])
				}
			}
			if !tt.hangs && (calls[2] != last || calls[2] != calls[1] || calls[1] == calls[0]) {
				t.Errorf("the trees are %q, and %q at the end", calls, last)
			}
		})
	}
}
