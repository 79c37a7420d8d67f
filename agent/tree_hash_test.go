package agent_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// hashingRepository reports when its files are hashed.
type hashingRepository struct {
	*agenttest.Repository
	started, hashed chan struct{}
	hangs           bool // until it is cancelled
	cancelled       int
}

func (r *hashingRepository) Open(ctx context.Context, sandbox env.Environment, cfg worktree.Config) (*worktree.Tree, error) {
	tree, err := r.Repository.Open(ctx, sandbox, cfg)
	if err != nil {
		return nil, err
	}
	return worktree.New(tree.Start(), r), nil
}

func (r *hashingRepository) Hash(ctx context.Context) (string, error) {
	if r.hangs && r.cancelled == 0 {
		r.cancelled++
		close(r.started)
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	tree, err := r.Repository.Hash(ctx)
	r.hashed <- struct{}{}
	return tree, err
}

// waitingModel answers after the files are hashed.
type waitingModel struct {
	*scriptedModel
	waits <-chan struct{}
}

func (p waitingModel) Query(ctx context.Context, m []model.Message) (model.Reply, error) {
	<-p.waits
	return p.scriptedModel.Query(ctx, m)
}

// recordedTrees returns the hashes of the calls and of the final diff.
func recordedTrees(t *testing.T, rec *testRecorder) (calls []string, last string) {
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

// The hash of the files is recorded with the model call, if there is time.
func TestTreeHash(t *testing.T) {
	defer agent.HashEveryCall()()
	tests := map[string]struct {
		hangs  bool
		hashed []bool // by call
	}{
		"there is time":        {false, []bool{true, true, true}},
		"the model is quicker": {true, []bool{false, false}}, // one call is skipped after that
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			repo := &hashingRepository{Repository: agenttest.NewRepository(t), started: make(chan struct{}), hashed: make(chan struct{}, 9), hangs: tt.hangs}
			m := waitingModel{replies("```bash\necho new > added\n```", "```bash\ntrue\n```", "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"), repo.hashed}
			if tt.hangs {
				m.waits = repo.started
			}
			a, err := agent.New(agent.Config{
				SystemTemplate: "s", InstanceTemplate: "t", ObservationTemplate: "o", FormatErrorTemplate: "f",
				Submission: agent.SubmissionPatch, StepLimit: 9,
			})
			if err != nil {
				t.Fatal(err)
			}
			rec := newRecorder()
			out := a.Run(t.Context(), agent.Session{Model: m, Environment: repo.Sandbox, Repository: repo, Recorder: rec, Task: agent.Task{Text: "task"}, RecordTreeHashes: true})
			if out.Class != trajectories.Submitted {
				t.Fatalf("%+v", out)
			}
			calls, last := recordedTrees(t, rec)
			for i, hashed := range tt.hashed {
				if (calls[i] != "") != hashed {
					t.Errorf("call %d: tree %q", i+1, calls[i])
				}
			}
			if !tt.hangs && (calls[2] != last || calls[2] != calls[1] || calls[1] == calls[0]) {
				t.Errorf("the trees are %q, and %q at the end", calls, last)
			}
		})
	}
}
