package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// The reports of a run and of an instance show the phase times of attempts. Journals without phase
// times do not count.
func TestPhases(t *testing.T) {
	back := inTemporary(t)
	manifest(t, "run", 3, "openai", session(time.Minute, 0))
	spent := func(start, scrub, model, commands, diff time.Duration) func(*trajectories.Outcome) {
		return func(o *trajectories.Outcome) {
			s := func(d time.Duration) trajectories.Seconds { return trajectories.Seconds(d * time.Second) }
			o.Times = trajectories.Times{SandboxStart: s(start), Scrub: s(scrub), Model: s(model), Commands: s(commands), Diff: s(diff)}
		}
	}
	writeJournal(t, "run", "a", 1, began, outcome(trajectories.Environment, "ContainerDied", 1, spent(1, 0, 10, 2, 0)))
	writeJournal(t, "run", "a", 2, began, outcome(trajectories.Submitted, "Submitted", 3, spent(2, 40, 60, 5, 1)))
	writeJournal(t, "run", "b", 1, began, outcome(trajectories.Submitted, "Submitted", 3, spent(3, 39, 30, 9, 2)))
	writeJournal(t, "run", "c", 1, began, outcome(trajectories.Submitted, "Submitted", 3)) // by an earlier version, without phase times
	preds := map[string]trajectories.Prediction{}
	for _, id := range []string{"a", "b", "c"} {
		preds[id] = trajectories.Prediction{InstanceID: id, Model: "gpt-5-mini", Patch: "diff"}
	}
	if err := trajectories.WritePredictions("run/preds.json", preds); err != nil {
		t.Fatal(err)
	}
	found := verdicts.Set{Dir: "run"}
	for _, r := range []verdicts.Record{
		verdict("a", verdicts.Resolved),
		verdict("b", verdicts.Unresolved, func(r *verdicts.Record) { r.Seconds = 20 }),
		verdict("c", verdicts.Resolved, func(r *verdicts.Record) { r.ReusedFrom = "elsewhere" }),
		verdict("a", verdicts.Resolved, func(r *verdicts.Record) { r.Model = evaluate.GoldModel }),
	} {
		found.Verdicts = append(found.Verdicts, verdicts.Verdict{Record: r})
	}
	run := read(t, "run")
	g := report.NewSummary(run, nil, began)
	g.Verdicts = report.NewScores(found, run, nil, began)
	g.AddEvaluationTimes(found, run)
	d, err := report.NewDetail(run, "a", began)
	if err != nil {
		t.Fatal(err)
	}
	d.AddVerdicts(found, report.ReadPredictions(run))
	back()

	want := []report.Phase{
		{Name: "start", Attempts: 3, Sum: 6, Median: 2},
		{Name: "scrub", Attempts: 3, Sum: 79, Median: 39},
		{Name: "model", Attempts: 3, Sum: 100, Median: 30},
		{Name: "commands", Attempts: 3, Sum: 16, Median: 5},
		{Name: "diff", Attempts: 3, Sum: 3, Median: 1},
		{Name: "evaluation", Attempts: 2, Sum: 80, Median: 20},
	}
	if diff := cmp.Diff(want, g.Totals.Phases); diff != "" {
		t.Errorf("of the run (-want +got):\n%s", diff)
	}
	text := shown(t, g.Doc(), 100)
	for _, line := range []string{
		"\n        start  scrub  model  commands  diff  evaluation\n",
		"\nsum        6s  1m19s  1m40s       16s    3s       1m20s\n",
		"\nmedian     2s    39s    30s        5s    1s         20s\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the report has no line %q:\n%s", line, text)
		}
	}
	one := shown(t, d.Doc(), 100)
	if line := "\ntime of attempt 2: start 2s, scrub 40s, model 1m00s, commands 5s, diff 1s, evaluation 1m00s\n"; !strings.Contains(one, line) {
		t.Errorf("the instance has no line %q:\n%s", line, one)
	}
}
