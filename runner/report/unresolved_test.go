package report_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// attempts returns an instance with one result for each outcome. An outcome is the
// class of a verdict or of a failure, "limit CLASS" for an attempt at a limit,
// "waiting" for one without a verdict, or "running".
func attempts(id string, outcomes ...string) runs.Instance {
	in := runs.Instance{ID: id}
	for i, name := range outcomes {
		a := runs.Attempt{Number: i + 1, Repetition: i + 1}
		r := runs.Result{Class: trajectories.Submitted, Repetition: i + 1, Attempt: i + 1, PatchBytes: 4}
		verdict, atLimit := strings.CutPrefix(name, "limit ")
		if atLimit {
			r.Class = trajectories.Limit
		}
		switch {
		case name == "running":
			in.Attempts = append(in.Attempts, a)
			continue
		case name == "waiting":
		case slices.Contains(verdicts.Classes(), verdicts.Class(verdict)):
			r.Verdict = &verdict
		default:
			r.Class = trajectories.Class(name)
		}
		in.Repetitions = append(in.Repetitions, r)
		a.Result = &in.Repetitions[len(in.Repetitions)-1]
		in.Attempts = append(in.Attempts, a)
	}
	return in
}

// failing writes the report of a test run below dir and returns the record of its
// verdict, of which these tests fail.
func failing(t *testing.T, dir, id string, repetition int, failToPass, passToPass []string) verdicts.Verdict {
	t.Helper()
	type lists map[string][]string
	data, err := json.Marshal(map[string]any{id: map[string]any{"tests_status": map[string]lists{
		"FAIL_TO_PASS": {"success": {"passes"}, "failure": failToPass}, "PASS_TO_PASS": {"failure": passToPass},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	files := fmt.Sprintf("logs/%s/%d", id, repetition)
	writeFile(t, filepath.Join(dir, files, "report.json"), string(data))
	return verdicts.Verdict{Record: verdict(id, verdicts.Unresolved, func(r *verdicts.Record) {
		r.Repetition = repetition
		r.Runs = []verdicts.TestRun{{
			Purpose: verdicts.ForVerdict, Class: verdicts.Unresolved, Failed: len(failToPass) + len(passToPass), Dir: files,
		}}
	})}
}

// groupsOf returns the names of the attempts in each group.
func groupsOf(u *report.Unresolved) map[string]string {
	groups := map[string]string{}
	for _, g := range u.Groups {
		var names []string
		for _, a := range g.Attempts {
			names = append(names, fmt.Sprintf("%s#%d", a.ID, a.Repetition))
		}
		groups[g.Name] = strings.Join(names, " ")
	}
	return groups
}

func TestUnresolved(t *testing.T) {
	back := inTemporary(t)
	run := &runs.Run{Dir: "run", Instances: []runs.Instance{
		attempts("a__a-1", "resolved", "unresolved", "unresolved"),
		attempts("a__a-2", "unresolved", "limit unresolved", "unresolved"),
		attempts("a__a-10", "unresolved", "apply_failed", "limit empty"),
		attempts("b__b-1", "timed_out", "unstable", "error"),
		attempts("b__b-2", "infrastructure", "waiting", "running"),
		attempts("b__b-3", "provider", "environment", "interrupted"),
		attempts("odd", "internal", "evil\x1b[2J", "resolved"),
	}}
	noTests := verdict("a__a-10", verdicts.Unresolved)
	set := verdicts.Set{Dir: "run", Verdicts: []verdicts.Verdict{
		failing(t, "run", "a__a-1", 2, []string{"x"}, nil),
		failing(t, "run", "a__a-1", 3, nil, []string{"y", "z"}),
		failing(t, "run", "a__a-2", 0, []string{"x"}, []string{"y"}),
		failing(t, "run", "a__a-2", 2, []string{"x"}, nil), // and none of the third repetition
		{Record: noTests},
		// Verdicts on a baseline and on another patch do not count.
		{Record: verdict("a__a-1", verdicts.Unresolved, func(r *verdicts.Record) { r.Model = evaluate.GoldModel })},
		{Record: verdict("b__b-2", verdicts.Unresolved, func(r *verdicts.Record) { r.Repetition, r.Basis.PatchBytes = 2, 99 })},
	}}
	u := report.NewUnresolved(run, set, nil)
	want := map[string]string{
		"target": "a__a-1#2 a__a-2#2", "regression": "a__a-1#3", "target_and_regression": "a__a-2#1",
		"tests_failed": "a__a-2#3", "no_test_results": "a__a-10#1", "apply_failed": "a__a-10#2", "empty": "a__a-10#3",
		"timed_out": "b__b-1#1", "unstable": "b__b-1#2", "error": "b__b-1#3",
		"infrastructure": "b__b-2#1", "not_evaluated": "b__b-2#2", "not_finished": "b__b-2#3",
		"provider": "b__b-3#1", "environment": "b__b-3#2", "interrupted": "b__b-3#3", "internal": "odd#1", "other": "odd#2",
	}
	if diff := cmp.Diff(want, groupsOf(u)); diff != "" {
		t.Error(diff)
	}
	if u.Attempts != 21 || u.Resolved != 2 || u.PerInstance != 3 {
		t.Errorf("%d attempts, %d resolved, %d for an instance", u.Attempts, u.Resolved, u.PerInstance)
	}
	unresolved := u.Resolved
	for _, r := range u.Repositories {
		unresolved -= r.Resolved
		for _, n := range r.Groups {
			unresolved += n
		}
	}
	if unresolved != u.Attempts-u.Resolved {
		t.Errorf("%d attempts in the repositories %+v", unresolved, u.Repositories)
	}

	// The patch of the second repetition of a__a-2 leaves out one of two files.
	gold := "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-1\n+2\n" +
		"diff --git a/new\x1b.py b/new\x1b.py\nnew file mode 100644\n--- /dev/null\n+++ b/new\x1b.py\n@@ -0,0 +1 @@\n+2\n"
	writeFile(t, "run/logs/a__a-2/2/patch.diff", "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-1\n+3\n")
	writeFile(t, "run/logs/a__a-1/3/patch.diff", "--- a/src/b.py\n+++ b/src/b.py\n@@ -1 +1 @@\n-1\n+3\n")
	ids := u.IDsWithPatch()
	if !ids["a__a-1"] || !ids["a__a-2"] || len(ids) != 2 {
		t.Errorf("with a patch: %v", ids)
	}
	if err := u.AddGold(map[string]string{"a__a-1": gold, "a__a-2": gold}); err != nil {
		t.Fatal(err)
	}
	if h := u.Hindsight; h == nil || h.Compared != 2 || h.NotTouched != 2 || h.NoneTouched != 1 {
		t.Errorf("%+v", h)
	}

	back()
	s := report.Summary{Instances: 7, Unresolved: u}
	golden(t, "unresolved.txt", shown(t, s.Doc(), 80))
	golden(t, "unresolved.json", indented(t, u))
	shown(t, s.Doc(), 40)
}

// Only some instances, a folder with verdicts only, and no verdict at all.
func TestUnresolvedOf(t *testing.T) {
	dir := t.TempDir()
	run := &runs.Run{Dir: dir, Instances: []runs.Instance{attempts("a__a-1", "unresolved"), attempts("a__a-2", "resolved")}}
	set := verdicts.Set{Dir: dir, Verdicts: []verdicts.Verdict{
		failing(t, dir, "a__a-1", 0, []string{"x"}, nil),
		{Record: verdict("a__a-3", verdicts.ApplyFailed)},
	}}
	for _, tt := range []struct {
		name string
		run  *runs.Run
		set  verdicts.Set
		ids  []string
		want map[string]string
	}{
		{"all", run, set, nil, map[string]string{"target": "a__a-1#0", "apply_failed": "a__a-3#0"}},
		{"some", run, set, []string{"a__a-2", "a__a-3"}, map[string]string{"apply_failed": "a__a-3#0"}},
		{"all resolved", run, set, []string{"a__a-2"}, map[string]string{}},
		{"verdicts only", &runs.Run{Dir: dir}, set, nil, map[string]string{"target": "a__a-1#0", "apply_failed": "a__a-3#0"}},
		{"records only", &runs.Run{Dir: dir, Instances: []runs.Instance{attempts("a__a-1", "waiting")}}, set, []string{"a__a-1"}, map[string]string{"target": "a__a-1#0"}},
		{"only failures", &runs.Run{Dir: dir, Instances: []runs.Instance{attempts("a__a-1", "infrastructure", "error", "waiting")}}, verdicts.Set{Dir: dir}, nil, map[string]string{"infrastructure": "a__a-1#1", "error": "a__a-1#2", "not_evaluated": "a__a-1#3"}},
		{"no verdict", &runs.Run{Dir: dir, Instances: []runs.Instance{attempts("a__a-1", "waiting", "provider")}}, verdicts.Set{Dir: dir}, nil, nil},
	} {
		u := report.NewUnresolved(tt.run, tt.set, tt.ids)
		if u == nil {
			if tt.want != nil {
				t.Errorf("%s: none", tt.name)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, groupsOf(u)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if u.HasVerdict() != (tt.name != "only failures") {
			t.Errorf("%s: has a verdict: %t", tt.name, u.HasVerdict())
		}
		text := report.Summary{Instances: 1, Unresolved: u}.Doc().Text(80)
		if strings.Contains(text, "why") != (len(tt.want) > 0) {
			t.Errorf("%s: %s", tt.name, text)
		}
	}

	// Records are untrusted: files outside the folder are not read.
	outside := failing(t, t.TempDir(), "a__a-1", 0, []string{"x"}, nil)
	outside.Runs[0].Dir = "../../" + outside.Runs[0].Dir
	u := report.NewUnresolved(run, verdicts.Set{Dir: dir, Verdicts: []verdicts.Verdict{outside}}, nil)
	if len(u.Unreadable) != 1 || groupsOf(u)["tests_failed"] != "a__a-1#0" {
		t.Errorf("%v %v", u.Unreadable, groupsOf(u))
	}
}
