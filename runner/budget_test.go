package runner_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// endlessModel never submits: an attempt runs until it is stopped.
func endlessModel(context.Context, datasets.Instance) (env.Environment, error) {
	return &fakeSandbox{output: "more to do"}, nil
}

// TestBudget checks that attempts end when the budget is spent, and are resumed with
// a larger one.
func TestBudget(t *testing.T) {
	dir := t.TempDir()
	run := func(budget runner.Budget, workers int, s starter) runs.Summary {
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
	sum := run(runner.Budget{Calls: 7}, 1, endlessModel)
	if !sum.BudgetExhausted || sum.Classes[trajectories.Limit] != 1 || sum.Classes[trajectories.Interrupted] != 1 || sum.Unstarted != 2 {
		t.Errorf("7 calls: %+v", sum)
	}
	b := results(t, dir)["b"]
	if b.ExitStatus != "BudgetExhausted" || b.Class != trajectories.Interrupted || b.Steps != 2 {
		t.Errorf("b ended with %s (%s) after %d steps, want BudgetExhausted after 2", b.ExitStatus, b.Class, b.Steps)
	}

	// With the same budget, no attempt starts.
	sum = run(runner.Budget{Calls: 7}, 1, starter(func(context.Context, datasets.Instance) (env.Environment, error) {
		t.Error("a sandbox was started for no money")
		return endlessModel(t.Context(), datasets.Instance{})
	}))
	if !sum.BudgetExhausted || sum.Skipped != 1 {
		t.Errorf("again: %+v", sum)
	}

	// With a larger budget (7 + 5 calls, as cost), the interrupted attempt is retried.
	sum = run(runner.Budget{Cost: 0.12}, 1, endlessModel)
	if !sum.BudgetExhausted || sum.Classes[trajectories.Limit] != 2 || sum.Unstarted != 2 {
		t.Errorf("12 cents: %+v", sum)
	}
	// With a sufficient budget, all attempts end.
	sum = run(runner.Budget{Cost: 1, Calls: 100}, 1, endlessModel)
	if sum.BudgetExhausted || !sum.Complete() {
		t.Errorf("plenty: %+v", sum)
	}
}

// TestBudgetCountsKilledAttempts counts the calls of attempts without an outcome.
func TestBudgetCountsKilledAttempts(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, endlessModel)
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
	// The outcome, the last record, was never written.
	end := len(data) - 1
	for data[end-1] != '\n' {
		end--
	}
	if err := os.WriteFile(journal, data[:end], 0o600); err != nil {
		t.Fatal(err)
	}

	b = batch(t, dir, endlessModel)
	b.Budget = runner.Budget{Calls: 6}
	sum, err := b.Run(t.Context(), rows("a"))
	if err != nil {
		t.Fatal(err)
	}
	if a := results(t, dir)["a"]; a.Steps != 1 || a.ExitStatus != agent.ErrBudgetExhausted.Error() || !sum.BudgetExhausted {
		t.Errorf("after 5 calls of 6 the next attempt made %d and ended with %s; %+v", a.Steps, a.ExitStatus, sum)
	}
}
