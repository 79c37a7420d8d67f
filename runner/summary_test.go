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
)

// withClerk are models with another one for summaries.
type withClerk struct {
	talker
	asked *int
}

func (m withClerk) Summary(datasets.Instance) (model.Model, error) { return clerk{m.asked}, nil }

type clerk struct{ asked *int }

func (c clerk) Query(context.Context, []model.Message) (model.Reply, error) {
	*c.asked++
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: "in short"}, Cost: 1, Tries: 1}, nil
}

// What a summary costs is the run's to pay: its budget ends before the next call,
// the step is not made, and whoever opens the folder again knows of the money.
func TestSummariesArePaid(t *testing.T) {
	a, err := agent.New(agent.Config{
		SystemTemplate: "s", InstanceTemplate: "{{.task}}", ObservationTemplate: "{{.output}}", FormatErrorTemplate: "{{.error}}",
		StepLimit: 50, Timeout: time.Minute, Compaction: agent.CompactSummarize, CompactionTokens: 2000, CompactionKeep: 2, SummaryTemplate: "short",
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	b := batch(t, dir, func(context.Context, datasets.Instance) (env.Environment, error) {
		return &room{output: strings.Repeat("much to read\n", 100)}, nil
	})
	asked := 0
	b.Agent, b.Models, b.Budget = a, withClerk{asked: &asked}, runner.Budget{Cost: 0.5}
	sum, err := b.Run(t.Context(), rows("a"))
	if err != nil {
		t.Fatal(err)
	}
	if asked != 1 || sum.Complete() {
		t.Fatalf("%d summaries, complete: %v", asked, sum.Complete())
	}
	run, err := runner.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := run.Instances[0].Attempts[0].Result
	if r == nil || r.ExitStatus != "BudgetExhausted" || r.Cost == nil || math.Abs(float64(*r.Cost)-1-0.01*float64(r.Steps)) > 1e-9 || r.Steps < 3 {
		t.Errorf("%+v", r)
	}
}
