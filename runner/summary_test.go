package runner_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
)

// modelsWithSummary are models with a separate model for summaries.
type modelsWithSummary struct {
	constantModel
	asked *int
}

func (m modelsWithSummary) SummaryModel(datasets.Instance) (model.Model, error) {
	return summaryModel{m.asked}, nil
}

type summaryModel struct{ asked *int }

func (c summaryModel) Query(context.Context, []model.Message) (model.Reply, error) {
	*c.asked++
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: "in short"}, Cost: 1, Tries: 1}, nil
}

// Summaries count towards the budget: it ends before the next call, and the cost is
// read again from the folder.
func TestSummariesAreCharged(t *testing.T) {
	a, err := agent.New(agent.Config{
		SystemTemplate: "s", InstanceTemplate: "{{.task}}", ObservationTemplate: "{{.output}}", FormatErrorTemplate: "{{.error}}",
		StepLimit: 50, Timeout: time.Minute, Compaction: agent.CompactionSummarize, CompactionTokens: 2000, CompactionKeep: 2, SummaryTemplate: "short",
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	b := batch(t, dir, func(context.Context, datasets.Instance) (env.Environment, error) {
		return &fakeSandbox{output: strings.Repeat("much to read\n", 100)}, nil
	})
	asked := 0
	b.Agent, b.Models, b.Budget = a, modelsWithSummary{asked: &asked}, runner.Budget{Cost: 0.5}
	sum, err := b.Run(t.Context(), rows("a"))
	if err != nil {
		t.Fatal(err)
	}
	if asked != 1 || sum.Complete() {
		t.Fatalf("%d summaries, complete: %v", asked, sum.Complete())
	}
	run, err := runs.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := run.Instances[0].Attempts[0].Result
	if r == nil || r.ExitStatus != "BudgetExhausted" || r.Cost == nil || math.Abs(float64(*r.Cost)-1-0.01*float64(r.Steps)) > 1e-9 || r.Steps < 3 {
		t.Errorf("%+v", r)
	}
}
