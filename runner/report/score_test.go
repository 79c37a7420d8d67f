package report_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// verdict returns a record on the submission of an instance in these tests.
func verdict(id string, class verdicts.Class, change ...func(*verdicts.Record)) verdicts.Record {
	sum := sha256.Sum256([]byte("diff"))
	r := verdicts.Record{
		Format: verdicts.Format, Instance: id, Model: "gpt-5-mini", RunID: "first", Class: class, Seconds: 60,
		Basis: verdicts.Basis{PatchBytes: 4, PatchSHA256: hex.EncodeToString(sum[:])},
		Runs:  []verdicts.TestRun{{Purpose: verdicts.ForVerdict, Class: class, Start: began}},
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func because(reason string) func(*verdicts.Record) {
	return func(r *verdicts.Record) { r.Reason = reason }
}

func flagged(without bool, names ...string) func(*verdicts.Record) {
	return func(r *verdicts.Record) {
		for _, name := range names {
			r.Flags = append(r.Flags, tampering.Finding{Flag: tampering.Flag(name), File: "a"}, tampering.Finding{Flag: tampering.Flag(name), File: "b"})
		}
		r.ResolvedWithoutSuspect = &without
	}
}

// bigEvaluation returns an evaluation of 500 instances with every kind of verdict.
func bigEvaluation(t *testing.T) []verdicts.Record {
	t.Helper()
	auto := func(o *trajectories.Outcome) { o.Autosubmitted = true }
	var records []verdicts.Record
	n := 0
	add := func(count int, class verdicts.Class, change ...func(*verdicts.Record)) {
		for range count {
			n++
			id := fmt.Sprintf("django__django-%d", 10_000+n)
			if n%20 == 0 {
				writeJournal(t, "run", id, 1, began, outcome(trajectories.Limit, "LimitsExceeded", 250, auto))
			} else {
				writeJournal(t, "run", id, 1, began, outcome(trajectories.Submitted, "Submitted", 10+n%30))
			}
			records = append(records, verdict(id, class, change...))
		}
	}
	add(230, verdicts.Resolved)
	add(6, verdicts.Resolved, flagged(false, "test_file", "ci"))
	add(9, verdicts.Unresolved, flagged(true, "test_config"))
	add(4, verdicts.Unresolved, flagged(false, "marker_printed"))
	add(3, verdicts.Unresolved, func(r *verdicts.Record) { r.Gold = verdicts.Unresolved })
	add(1, verdicts.Resolved, func(r *verdicts.Record) { r.Noop = verdicts.Resolved })
	add(190, verdicts.Unresolved, func(r *verdicts.Record) { r.Gold, r.Noop = verdicts.Resolved, verdicts.Unresolved })
	add(9, verdicts.Unstable, because("resolved in 1 of 3 runs"))
	add(1, verdicts.Unstable, because("2 of 3 runs took longer than 30 minutes, and the other one had \x1b[31m"+strings.Repeat("very ", 40)+"much to say"))
	add(5, verdicts.Empty)
	add(6, verdicts.ApplyFailed)
	add(3, verdicts.TimedOut)
	add(11, verdicts.Infrastructure, because("pull image docker.io/swebench/sweb.eval.x86_64.django: no space left on device"))
	add(1, verdicts.Infrastructure, because("the sandbox was killed"))
	add(1, verdicts.Infrastructure, because("the network is down"))
	add(2, verdicts.Error, because("the parser parse_log_django cannot read this log: list index out of range"))
	for _, id := range []string{"sympy__sympy-1", "sympy__sympy-2"} { // submitted but not evaluated yet
		writeJournal(t, "run", id, 1, began, outcome(trajectories.Submitted, "Submitted", 3))
	}
	writeJournal(t, "run", "flask__flask-1", 1, began, outcome(trajectories.Provider, "RateLimited", 1))
	manifest(t, "run", 500, "openai", session(5*time.Hour, 0))
	return records
}

func TestScore(t *testing.T) {
	back := inTemporary(t)
	records := bigEvaluation(t)
	run := read(t, "run")
	back()
	s := report.NewScore(report.Evaluation{RunID: "first", Records: records, Run: run, Official: "run/gpt-5-mini.first.json", Now: began})
	text := shown(t, s.Doc(), 80)
	golden(t, "score.txt", text)
	if lines := strings.Count(text, "\n"); lines > 32 {
		t.Errorf("%d lines for a batch of 500", lines)
	}
	for _, width := range []int{40, 60, 120} {
		shown(t, s.Doc(), width)
	}
	if s.Complete() {
		t.Error("complete, with infrastructure failures and patches that wait")
	}
	repos := &doc.Doc{}
	s.AddRepos(repos)
	golden(t, "score-repos.txt", shown(t, repos, 80))
	sum := s.NoResult + len(s.NotEvaluated)
	for _, c := range s.Classes {
		sum += c.Count
		if c.Count != len(c.IDs) {
			t.Errorf("%s: %d, and %d ids", c.Class, c.Count, len(c.IDs))
		}
	}
	if sum != s.Instances || s.Instances != 500 {
		t.Errorf("%d instances in %d", sum, s.Instances)
	}
}

func TestSmallScores(t *testing.T) {
	tests := []struct {
		name string
		e    report.Evaluation
	}{
		{"none", report.Evaluation{RunID: "first"}},
		{"unknown", report.Evaluation{RunID: "first", Unfinished: []string{"d"}, IDs: []string{"a", "b", "c", "d", "e"}, Records: []verdicts.Record{
			verdict("a", verdicts.Infrastructure), verdict("b", verdicts.Infrastructure), verdict("c", verdicts.Error),
		}}},
		{"plain", report.Evaluation{RunID: "first", Records: []verdicts.Record{
			verdict("a", verdicts.Resolved), verdict("b", verdicts.Unresolved), verdict("c", verdicts.Empty, func(r *verdicts.Record) { r.Seconds = 0 }),
		}}},
		{"stopped", report.Evaluation{
			RunID: "first", Unfinished: []string{"b"}, IDs: []string{"a", "b", "c", "quarantined"},
			Records: []verdicts.Record{
				verdict("a", verdicts.Resolved), verdict("not-asked-for", verdicts.Resolved),
				verdict("quarantined", verdicts.Unresolved, func(r *verdicts.Record) { r.Gold = verdicts.TimedOut }),
			},
		}},
		{"hostile", report.Evaluation{RunID: "first", Records: []verdicts.Record{
			verdict("a\x1b[2J\u202e"+strings.Repeat("long", 40), verdicts.Unstable, because("one\ntwo")),
			verdict("b\x1b[2J", verdicts.Unresolved, flagged(true, "a\x07b"), func(r *verdicts.Record) { r.Model = "org/model\x1b[0m" + strings.Repeat("x", 200) }),
		}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := report.NewScore(tt.e)
			golden(t, "score-"+tt.name+".txt", shown(t, s.Doc(), 80))
			golden(t, "score-"+tt.name+".json", indented(t, s))
		})
	}
}

// The folder of a run may have several evaluations, including those of a baseline.
func TestScores(t *testing.T) {
	back := inTemporary(t)
	for _, id := range []string{"a", "b", "c"} {
		writeJournal(t, "run", id, 1, began, outcome(trajectories.Submitted, "Submitted", 3))
	}
	manifest(t, "run", 3, "openai", session(time.Minute, 0))
	preds := map[string]trajectories.Prediction{}
	for id, model := range map[string]string{"a": "gpt-5-mini", "b": "gpt-5", "c": "gpt-5-mini"} {
		preds[id] = trajectories.Prediction{InstanceID: id, Model: model, Patch: "diff"}
	}
	if err := trajectories.WritePredictions("run/preds.json", preds); err != nil {
		t.Fatal(err)
	}
	run := read(t, "run")
	as := func(runID, model string, hours int) func(*verdicts.Record) {
		return func(r *verdicts.Record) {
			r.RunID, r.Model = runID, model
			r.Runs[0].Start = began.Add(time.Duration(hours) * time.Hour)
		}
	}
	var found verdicts.Set
	for _, r := range []verdicts.Record{
		verdict("a", verdicts.Resolved, as("again", "gpt-5-mini", 3)),
		verdict("b", verdicts.Resolved, as("again", "gpt-5", 3)),
		verdict("c", verdicts.Resolved, as("again", "gpt-5-mini", 3), func(r *verdicts.Record) { r.Basis.PatchSHA256 = "of another patch" }),
		verdict("a", verdicts.Unresolved, as("first", "gpt-5-mini", 1)),
		verdict("a", verdicts.Resolved, as("first", "other/agent", 2)),
		verdict("a", verdicts.Unresolved, as("first", "gold", 4)),
		verdict("c", verdicts.Infrastructure, as("first", "gold", 4)),
		verdict("b", verdicts.Unresolved, as("first", "noop", 4)),
	} {
		found.Verdicts = append(found.Verdicts, verdicts.Verdict{Record: r})
	}
	var got []string
	for _, s := range report.NewScores(found, run, nil, began) {
		got = append(got, fmt.Sprintf("%s%v %d of %d %v %v %v", s.RunID, s.Models, s.Rate.Resolved, s.Rate.Of, s.Quarantined, s.NotEvaluated, s.HasRun))
	}
	want := []string{
		"first[gpt-5-mini] 0 of 3 [{a unresolved }] [b c] true",
		"first[other/agent] 1 of 1 [{a unresolved }] [] false",
		"again[gpt-5-mini gpt-5] 2 of 3 [{a unresolved }] [c] true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	g := report.NewSummary(run, nil, began)
	g.Verdicts = report.NewScores(found, run, nil, began)
	back()
	golden(t, "glance-verdicts.txt", shown(t, g.Doc(), 80))

	baseline := verdicts.Set{Verdicts: found.Verdicts[5:]}
	if scores := report.NewScores(baseline, run, nil, began); len(scores) != 2 || scores[0].HasRun {
		t.Errorf("of the baseline alone: %+v", scores)
	}
}

// The score of a baseline compares it with the expected result.
func TestBaselineScores(t *testing.T) {
	of := func(model string) func(*verdicts.Record) {
		return func(r *verdicts.Record) {
			r.Model = model
			if r.Class.IsFinal() && model == evaluate.GoldModel {
				r.Gold = r.Class
			} else if r.Class.IsFinal() {
				r.Noop = r.Class
			}
		}
	}
	for _, tt := range []struct {
		model   string
		classes []verdicts.Class
		want    string
	}{
		{"gold", []verdicts.Class{verdicts.Resolved, verdicts.Resolved}, "gold: 2 of 2 pass with the gold patch, as expected\nevaluation first\n"},
		{"noop", []verdicts.Class{verdicts.Unresolved, verdicts.Unresolved}, "noop: 0 of 2 pass without a patch, as expected\nevaluation first\n"},
		{"gold", []verdicts.Class{verdicts.Resolved, verdicts.TimedOut, verdicts.Infrastructure}, "gold: 1 of 3 pass with the gold patch; 1 cannot be evaluated on this machine; 1 without a verdict\nevaluation first\n"},
		{"noop", []verdicts.Class{verdicts.Resolved, verdicts.Unresolved}, "noop: 1 of 2 pass without a patch; 1 cannot be evaluated on this machine\nevaluation first\n"},
		{"noop", []verdicts.Class{verdicts.Infrastructure}, "noop: 0 of 1 pass without a patch; 1 without a verdict\nevaluation first\n"},
	} {
		e := report.Evaluation{RunID: "first"}
		for i, c := range tt.classes {
			e.Records = append(e.Records, verdict(fmt.Sprintf("a-%d", i), c, of(tt.model)))
		}
		s := report.NewScore(e)
		text := shown(t, s.Doc(), 80)
		if !strings.HasPrefix(strings.ReplaceAll(text, "1\nwithout", "1 without"), tt.want) {
			t.Errorf("%s %v:\n%s\nwant\n%s", tt.model, tt.classes, text, tt.want)
		}
		if s.Baseline != tt.model || s.WithoutQuarantined != nil {
			t.Errorf("%s: baseline %q, without the quarantined %v", tt.model, s.Baseline, s.WithoutQuarantined)
		}
		if wrong := strings.Contains(tt.want, "evaluated on"); wrong != strings.Contains(text, "1 quarantined here: a-") {
			t.Errorf("%s %v: who is quarantined?\n%s", tt.model, tt.classes, text)
		}
	}
}

// Score.Official is the summary of the first model that has one.
func TestOfficialSummary(t *testing.T) {
	dir := t.TempDir()
	found := verdicts.Set{Dir: dir, Verdicts: []verdicts.Verdict{{Record: verdict("a", verdicts.Resolved)}}}
	if s := report.NewScores(found, nil, nil, began); s[0].Official != "" {
		t.Errorf("a summary that is not there: %s", s[0].Official)
	}
	path := dir + "/gpt-5-mini.first.json"
	writeFile(t, path, "{}")
	if s := report.NewScores(found, nil, nil, began); s[0].Official != path {
		t.Errorf("%q, want %q", s[0].Official, path)
	}
}
