package compare_test

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/compare"
)

// instances returns n instances with k attempts each, of which resolved(i) are
// resolved, at a cost in dollars for each attempt.
func instances(n, k int, cost float64, resolved func(i int) int) []compare.Instance {
	all := make([]compare.Instance, n)
	for i := range all {
		in := compare.Instance{ID: fmt.Sprintf("owner__%c-%d", 'a'+i%2, i), Requested: k, Bill: compare.Cost{Known: true}}
		for j := range k {
			a := compare.Attempt{Outcome: "unresolved", Steps: 10 + j, Cost: compare.Cost{Dollars: cost, Known: true}}
			if j < resolved(i) {
				a.Outcome, a.Resolved = "resolved", true
			}
			in.Attempts = append(in.Attempts, a)
			in.Bill.Dollars += cost
		}
		all[i] = in
	}
	return all
}

// first returns a function that resolves all k attempts of the first n
// instances.
func first(n, k int) func(int) int {
	return func(i int) int {
		if i < n {
			return k
		}
		return 0
	}
}

func run(name string, in []compare.Instance) compare.Run {
	return compare.Run{Name: name, Instances: in, Selected: len(in)}
}

func mustCompare(t *testing.T, o compare.Options, runs ...compare.Run) *compare.Result {
	t.Helper()
	r, err := compare.New(runs, o)
	require.NoError(t, err)
	return r
}

func TestConclusions(t *testing.T) {
	for _, c := range []struct {
		name            string
		candidate, base []compare.Instance
		want            compare.Conclusion
		sentence        string
	}{
		{
			"more", instances(500, 1, 1, first(300, 1)), instances(500, 1, 1, first(270, 1)), compare.More,
			"new resolves 6.0 points more than old (3.9 to 8.1), p = 1.9e-09",
		},
		{
			"fewer", instances(500, 1, 1, first(270, 1)), instances(500, 1, 1, first(300, 1)), compare.Fewer,
			"new resolves 6.0 points fewer than old (3.9 to 8.1), p = 1.9e-09",
		},
		{
			"too few flips", instances(20, 1, 1, first(5, 1)), instances(20, 1, 1, first(0, 1)), compare.Borderline,
			"borderline: new against old: 25.0 points (3.8 to 46.9), p = 0.062",
		},
		{
			"no difference", instances(50, 3, 1, first(25, 3)), instances(50, 3, 1, first(25, 3)), compare.Unclear,
			"cannot tell whether new differs from old: 0.0 points (-5.8 to 5.8), p = 1.00",
		},
		{
			"nothing in common", instances(3, 1, 1, first(1, 1)), nil, compare.NoPairs,
			"new and old cannot be compared: no instance has a verdict in both",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustCompare(t, compare.Options{}, run("old", c.base), run("new", c.candidate)).Pairs[0]
			if p.Conclusion != c.want || p.Sentence != c.sentence {
				t.Errorf("%s: %s", p.Conclusion, p.Sentence)
			}
		})
	}
}

// The rates and costs of six runs, and which of them another run dominates.
func TestFrontier(t *testing.T) {
	var runs []compare.Run
	for _, r := range []struct {
		name string
		rate int
		cost float64
	}{{"A", 60, 1.20}, {"B", 55, .40}, {"C", 50, .80}, {"D", 60, 1.00}, {"E", 62, 3.00}, {"F", 58, -1}} {
		in := instances(100, 1, max(0, r.cost), first(r.rate, 1))
		if r.cost < 0 { // a call without a price
			in[0].Attempts[0].Cost.Known = false
		}
		runs = append(runs, run(r.name, in))
	}
	got := map[string]string{}
	for _, s := range mustCompare(t, compare.Options{}, runs...).Runs {
		got[s.Name] = s.DominatedBy
		if s.Frontier {
			got[s.Name] = "frontier"
		}
	}
	want := map[string]string{"A": "D", "B": "frontier", "C": "B", "D": "frontier", "E": "frontier", "F": ""}
	assert.Equal(t, want, got, "the result")
}

func TestCostOfResolved(t *testing.T) {
	r := mustCompare(t, compare.Options{}, run("A", instances(300, 1, 2, first(300, 1))), run("B", instances(5, 1, 1, first(0, 1))))
	if c := r.Runs[0].Cost; c.PerResolved == nil || math.Abs(*c.PerResolved-2) > 1e-9 || c.Total != 600 {
		t.Errorf("%+v", c)
	}
	if c := r.Runs[1].Cost; c.PerResolved != nil {
		t.Errorf("nothing is resolved, but it costs %f", *c.PerResolved)
	}
}

// 12 of 500 instances have no verdict.
func TestMissingVerdicts(t *testing.T) {
	in := instances(500, 1, 1, first(396, 1))
	for i := 488; i < 500; i++ {
		in[i].Attempts = nil
	}
	r := mustCompare(t, compare.Options{}, run("A", in), run("B", instances(500, 1, 1, first(390, 1))))
	s := r.Runs[0]
	if s.MissingAttempts != 12 || s.Rate.Instances != 488 || math.Abs(s.Rate.Mean-.81147541) > 1e-6 {
		t.Errorf("%+v", s)
	}
	if math.Abs(s.Bounds.Low-.792) > 1e-9 || math.Abs(s.Bounds.High-.816) > 1e-9 {
		t.Errorf("bounds %v", s.Bounds)
	}
	if p := r.Pairs[0]; p.Difference.Instances != 488 || len(p.Unpaired) != 12 || len(p.Bounds) != 4 {
		t.Errorf("%d paired, %d not, %d bounds", p.Difference.Instances, len(p.Unpaired), len(p.Bounds))
	}
	failed := mustCompare(t, compare.Options{Missing: compare.Fail}, run("A", in), run("B", instances(500, 1, 1, first(390, 1))))
	if s := failed.Runs[0]; s.Rate.Instances != 500 || math.Abs(s.Rate.Mean-.792) > 1e-9 {
		t.Errorf("--missing fail: %+v", s.Rate)
	}
}

// Missing verdicts decide: with them unresolved, the runs are equal.
func TestWarning(t *testing.T) {
	in := instances(100, 1, 1, first(60, 1))
	for i := 60; i < 100; i++ {
		in[i].Attempts = nil
	}
	base := instances(100, 1, 1, func(i int) int { return first(70, 1)(i) - first(10, 1)(i) })
	p := mustCompare(t, compare.Options{}, run("B", base), run("A", in)).Pairs[0]
	assert.Contains(t, p.Warning, "the conclusion depends on missing verdicts", "%s", p.Sentence)
}

func TestUnpaired(t *testing.T) {
	a, b := instances(4, 1, 1, first(2, 1)), instances(3, 1, 1, first(2, 1))
	a[0].Spec, b[0].Spec = "one", "another"
	a[1].Spec = "one" // unknown in the other
	b[2].Attempts = nil
	p := mustCompare(t, compare.Options{}, run("B", b), run("A", a)).Pairs[0]
	want := []compare.Unpaired{
		{ID: "owner__a-2", Reason: "no verdict in B"},
		{ID: "owner__b-3", Reason: "only in A"},
		{ID: "owner__a-0", Reason: "the tests differ"},
	}
	if diff := cmp.Diff(want, p.Unpaired); diff != "" || p.Difference.Instances != 1 {
		t.Errorf("%d paired\n%s", p.Difference.Instances, diff)
	}
}

func TestGate(t *testing.T) {
	base := run("base", instances(400, 1, 1, first(300, 1)))
	for resolved, want := range map[int]compare.GateAnswer{310: compare.Passed, 297: compare.Passed, 293: compare.Unknown, 250: compare.Failed} {
		limit := 2.0
		r := mustCompare(t, compare.Options{MaxDrop: &limit}, base, run("new", instances(400, 1, 1, first(resolved, 1))))
		if r.Gate.Answer != want {
			t.Errorf("%d of 400: %s, %+v", resolved, r.Gate.Answer, r.Pairs[0].Difference.Interval)
		}
	}
}

// The smallest number of wrong verdicts that would change the conclusion.
func TestReversals(t *testing.T) {
	p := mustCompare(t, compare.Options{}, run("B", instances(100, 1, 1, first(50, 1))), run("A", instances(100, 1, 1, first(60, 1)))).Pairs[0]
	if p.Reversals != 5 { // 10 flips one way: p is 0.0625 with 5 of them
		t.Errorf("%d", p.Reversals)
	}
	// 300 flips one way and 240 the other: p is 0.053 with 285 against 240.
	candidate := instances(540, 1, 1, first(300, 1))
	base := instances(540, 1, 1, func(i int) int { return 1 - first(300, 1)(i) })
	p = mustCompare(t, compare.Options{}, run("B", base), run("A", candidate)).Pairs[0]
	assert.Equal(t, 15, p.Reversals)
}

// Every number of the text is in the JSON form, which has finite numbers only.
func TestJSON(t *testing.T) {
	for _, runs := range [][]compare.Run{
		{run("A", nil), run("B", nil)},
		{run("A", instances(1, 1, 0, first(1, 1))), run("B", instances(1, 1, 0, first(0, 1)))},
		{run("A", instances(7, 3, 1, first(3, 2))), run("B", instances(9, 2, 1, first(5, 1))), run("C", instances(2, 1, 1, first(1, 1)))},
	} {
		r := mustCompare(t, compare.Options{Detect: 3}, runs...)
		_, err := json.Marshal(r)
		assert.NoError(t, err)
		for _, width := range []int{20, 80, 200} {
			_ = r.Doc().Text(width) // no panic
		}
	}
}

// The text of a comparison of three runs, one with hostile names.
func TestText(t *testing.T) {
	a, b := instances(60, 3, .5, first(40, 3)), instances(60, 3, .4, first(30, 2))
	b[3].Attempts = b[3].Attempts[:1]
	b[31].Attempts[0].Outcome = "timed_out"
	a[35].Attempts[0].Flagged = true
	a[0].ID, b[0].ID = "owner__\x1b[31m|<b>-0", "owner__\x1b[31m|<b>-0"
	old, candidate, other := run("old", a), run("new", b), run("=other", instances(60, 1, 1, first(20, 1)))
	old.Settings = map[string]string{"model.model_name": "m1", "agent.step_limit": "50", "same": "x"}
	candidate.Settings = map[string]string{"model.model_name": "m2|x", "agent.step_limit": "50", "same": "x"}
	other.Settings = map[string]string{"model.model_name": "m3", "same": "x"}
	limit := 1.0
	runs := []compare.Run{old, candidate, other}
	r := mustCompare(t, compare.Options{Detect: 3, MaxDrop: &limit}, runs...)
	var text, md, csv strings.Builder
	for _, err := range []error{r.Doc().WriteText(&text, 100), r.Doc().WriteMarkdown(&md), r.WriteCSV(&csv, runs)} {
		require.NoError(t, err)
	}
	for name, got := range map[string]string{"compare.txt": text.String(), "compare.md": md.String(), "compare.csv": csv.String()} {
		if strings.Contains(got, "\x1b") && name != "compare.csv" {
			t.Errorf("%s has a control character", name)
		}
		golden.Check(t, filepath.Join("testdata", name), got)
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct{ dirs, want []string }{
		{[]string{"runs/a"}, []string{"runs/a"}},
		{[]string{"runs/a", "runs/b/"}, []string{"a", "b"}},
		{[]string{"/data/runs/a", "/data/runs/old/b"}, []string{"a", "old/b"}},
		{[]string{"runs/a", "more/a"}, []string{"runs/a", "more/a"}},
		{[]string{"./a", "a/b"}, []string{"a", "a/b"}},
		{[]string{"../a", "../b"}, []string{"a", "b"}},
	} {
		assert.Equal(t, test.want, compare.Names(test.dirs), "%q", test.dirs)
	}
}

// The number of steps comes from an untrusted file.
func TestAbsurdSteps(t *testing.T) {
	run := compare.Run{Instances: []compare.Instance{{ID: "a", Attempts: []compare.Attempt{{Steps: math.MaxInt, Resolved: true}}}}}
	if got := compare.Summarize(run, compare.Drop).ByLimit; len(got) == 0 || got[len(got)-1].Rate != 1 {
		t.Errorf("rates by limit: %v", got)
	}
}

// On pages, tables have the names of the runs in place of letters, "candidate" and "base".
func TestNamedSections(t *testing.T) {
	const long = "runs/a-long-name-of-a-run"
	in := func(resolved bool) compare.Instance {
		return compare.Instance{ID: "a", Requested: 1, Attempts: []compare.Attempt{{Resolved: resolved}}}
	}
	r, err := compare.New([]compare.Run{{Name: "base-run", Instances: []compare.Instance{in(false)}}, {Name: long, Instances: []compare.Instance{in(true)}}}, compare.Options{Missing: compare.Drop})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range r.NamedSections() {
		if s.Title == "Runs" && s.Rows[2][0] != long {
			t.Errorf("rows %q", s.Rows)
		}
		if s.HasInstances {
			found = s.Rows[0][1] == long && s.Rows[0][2] == "base-run"
		}
	}
	if !found {
		t.Error("the table of instances does not name the runs")
	}
}
