package evaluate_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/evaluate"
)

// Each repetition has its own verdict and summary. The summary of the first repetition
// does not count the others.
func TestRepetitions(t *testing.T) {
	in := row(t)
	task := func(sample int, patch string) evaluate.Task {
		p := evaluate.NewTask(in, "m", []byte(patch))
		p.Repetition = sample
		return p
	}
	tests := map[string]struct {
		tasks     []evaluate.Task
		submitted int   // in the first repetition
		samples   []int // the others
	}{
		"beside the first":    {[]evaluate.Task{task(1, fix), task(2, fix+"\n")}, 1, []int{2}},
		"the same patch":      {[]evaluate.Task{task(1, fix), task(3, fix)}, 1, []int{3}},
		"without the first":   {[]evaluate.Task{task(2, fix), task(3, "")}, 0, []int{2, 3}},
		"nobody asked for it": {[]evaluate.Task{task(0, fix)}, 1, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newEvaluation(t, &fakeSandboxes{})
			s := b.run(t.Context(), tt.tasks...)
			if s.Submitted != tt.submitted || s.PatchCount() != len(tt.tasks) || !s.IsComplete() || len(s.Repetitions) != len(tt.samples) {
				t.Fatalf("%d submitted, %d patches, complete %v: %+v", s.Submitted, s.PatchCount(), s.IsComplete(), s)
			}
			for i, k := range tt.samples {
				f := s.Repetitions[i]
				if f.Repetition != k || f.Submitted != 1 || len(f.Records) != 1 || f.Records[0].Repetition != k || f.OfficialPath == s.OfficialPath {
					t.Errorf("sample %d: %+v", k, f)
				}
				if _, err := os.Stat(f.OfficialPath); err != nil {
					t.Error(err)
				}
			}
			if _, err := os.Stat(filepath.Join(b.dir, "m.r1.json")); (err == nil) != (tt.submitted > 0) {
				t.Errorf("the official summary of the first: %v", err)
			}
			if again := b.run(t.Context(), tt.tasks...); again.PatchCount() != s.PatchCount() || !again.IsComplete() {
				t.Errorf("the second time: %+v", again)
			}
		})
	}
}

// An evaluation is incomplete if a later repetition has no verdict.
func TestRepetitionWithoutVerdict(t *testing.T) {
	in := row(t)
	task := evaluate.NewTask(in, "m", []byte(fix))
	task.Repetition = 2
	b := newEvaluation(t, &fakeSandboxes{start: func(context.Context, int) error { return newEnvError(env.ImageNotFound) }})
	if s := b.run(t.Context(), task); s.IsComplete() || s.PatchCount() != 1 || s.Submitted != 0 {
		t.Errorf("%+v", s)
	}
}
