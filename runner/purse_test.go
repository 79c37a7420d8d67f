package runner_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// works never submits: an attempt goes on until something ends it.
func works(context.Context, datasets.Instance) (env.Environment, error) {
	return &room{output: "more to do"}, nil
}

// TestBudget ends attempts cleanly when the money or the calls of the run are
// spent, and goes on where there is more of them.
func TestBudget(t *testing.T) {
	dir := t.TempDir()
	run := func(budget runner.Budget, workers int, s starter) runner.Summary {
		t.Helper()
		b := batch(t, dir, s)
		b.Budget, b.Workers = budget, workers
		sum, err := b.Run(t.Context(), rows("a", "b", "c", "d"))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Folder.Close(); err != nil {
			t.Fatal(err)
		}
		return sum
	}

	// Attempts end after 5 calls by their own limit; 7 calls are one attempt and
	// two calls of the next.
	sum := run(runner.Budget{Calls: 7}, 1, works)
	if !sum.Exhausted || sum.Classes[trajectories.Limit] != 1 || sum.Classes[trajectories.Interrupted] != 1 || sum.Unstarted != 2 {
		t.Errorf("7 calls: %+v", sum)
	}
	b := results(t, dir)["b"]
	if b.ExitStatus != "BudgetExhausted" || b.Class != trajectories.Interrupted || b.Steps != 2 {
		t.Errorf("b ended with %s (%s) after %d steps, want BudgetExhausted after 2", b.ExitStatus, b.Class, b.Steps)
	}

	// The same budget again: nothing is left, and nothing is started.
	sum = run(runner.Budget{Calls: 7}, 1, starter(func(context.Context, datasets.Instance) (env.Environment, error) {
		t.Error("a sandbox was started for no money")
		return works(t.Context(), datasets.Instance{})
	}))
	if !sum.Exhausted || sum.Skipped != 1 {
		t.Errorf("again: %+v", sum)
	}

	// More of it: what was interrupted is made again, 7 + 5 calls, by cost.
	sum = run(runner.Budget{Cost: 0.12}, 1, works)
	if !sum.Exhausted || sum.Classes[trajectories.Limit] != 2 || sum.Unstarted != 2 {
		t.Errorf("12 cents: %+v", sum)
	}
	// Enough of it.
	sum = run(runner.Budget{Cost: 1, Calls: 100}, 1, works)
	if sum.Exhausted || !sum.Complete() {
		t.Errorf("plenty: %+v", sum)
	}
}

// TestBudgetCountsTheKilled adds up the calls of attempts that have no outcome.
func TestBudgetCountsTheKilled(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, works)
	if _, err := b.Run(t.Context(), rows("a")); err != nil {
		t.Fatal(err)
	}
	if err := b.Folder.Close(); err != nil {
		t.Fatal(err)
	}
	journal := fmt.Sprintf("%s/a/attempts/1/journal.jsonl", dir)
	data, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	// The last record, which is the outcome, was never written.
	end := len(data) - 1
	for data[end-1] != '\n' {
		end--
	}
	if err := os.WriteFile(journal, data[:end], 0o600); err != nil {
		t.Fatal(err)
	}

	b = batch(t, dir, works)
	b.Budget = runner.Budget{Calls: 6}
	sum, err := b.Run(t.Context(), rows("a"))
	if err != nil {
		t.Fatal(err)
	}
	if a := results(t, dir)["a"]; a.Steps != 1 || a.ExitStatus != agent.ErrBudgetExhausted.Error() || !sum.Exhausted {
		t.Errorf("after 5 calls of 6 the next attempt made %d and ended with %s; %+v", a.Steps, a.ExitStatus, sum)
	}
}

// TestBudgetOfManyWorkers never makes one call too many.
func TestBudgetOfManyWorkers(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, works)
	b.Budget, b.Workers = runner.Budget{Calls: 33}, 8
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("i%02d", i))
	}
	sum, err := b.Run(t.Context(), rows(ids...))
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, r := range results(t, dir) {
		steps += r.Steps
	}
	if steps != 33 || math.Abs(float64(sum.Spent())-0.33) > 1e-9 {
		t.Errorf("%d calls for $%.2f, want 33 for $0.33", steps, float64(sum.Spent()))
	}
}
