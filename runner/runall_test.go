package runner_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// runAll opens batches in folders below dir, runs them together and closes them.
func runAll(t *testing.T, dir string, names []string, instances []datasets.Instance, prepare func(name string, b *runner.Batch)) []runs.Summary {
	t.Helper()
	var batches []*runner.Batch
	for _, name := range names {
		b := batch(t, filepath.Join(dir, name), submits)
		prepare(name, b)
		batches = append(batches, b)
	}
	summaries, err := runner.RunAll(t.Context(), batches, instances)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := b.Folder.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return summaries
}

// TestRunAllSharesWorkers checks that batches take turns, and that the number of
// workers holds for all together.
func TestRunAllSharesWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		running := 0
		runAll(t, t.TempDir(), []string{"a", "b", "c"}, rows("1", "2"), func(name string, b *runner.Batch) {
			b.Workers = 2
			b.Sandboxes = starter(func(_ context.Context, in datasets.Instance) (env.Environment, error) {
				mu.Lock()
				order = append(order, name+in.ID)
				running++
				if running > 2 {
					t.Errorf("%d tasks at once: %v", running, order)
				}
				mu.Unlock()
				time.Sleep(time.Second)
				return &fakeSandbox{output: "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\np\n", closed: func() {
					mu.Lock()
					defer mu.Unlock()
					running--
				}}, nil
			})
		})
		for round := range slices.Chunk(order, 2) { // the two workers start in any order
			slices.Sort(round)
		}
		if want := []string{"a1", "b1", "a2", "c1", "b2", "c2"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// TestRunAllSharesBudget checks that the budget holds for all batches together, with
// what earlier sessions of each have used.
func TestRunAllSharesBudget(t *testing.T) {
	dir := t.TempDir()
	limited := func(calls int) []runs.Summary {
		return runAll(t, dir, []string{"a", "b"}, rows("1", "2", "3"), func(_ string, b *runner.Batch) {
			b.Workers, b.Budget = 1, runner.Budget{Calls: calls}
		})
	}
	for _, calls := range []int{3, 5} { // each attempt makes one call
		summaries := limited(calls)
		a, b := summaries[0], summaries[1]
		if a.Results() != (calls+1)/2 || b.Results() != calls/2 || !a.BudgetExhausted || !b.BudgetExhausted {
			t.Errorf("%d calls: %+v, %+v", calls, a, b)
		}
	}
}

// TestRunAllStopsOneBatch checks that a broken model ends its own batch only.
func TestRunAllStopsOneBatch(t *testing.T) {
	key := &model.Error{Status: model.AuthenticationError, HTTPStatus: 401, Err: errors.New("no such key")}
	summaries := runAll(t, t.TempDir(), []string{"broken", "works"}, rows("1", "2", "3", "4"), func(name string, b *runner.Batch) {
		b.Workers, b.MaxProviderFailures = 1, 2
		if name == "broken" {
			b.Models = constantModel{key}
		}
	})
	if broken := summaries[0]; broken.Halt == nil || broken.Classes[trajectories.Provider] != 2 || broken.Unstarted != 2 {
		t.Errorf("broken: %+v", broken)
	}
	if works := summaries[1]; works.Halt != nil || !works.Complete() {
		t.Errorf("works: %+v", works)
	}
}
