package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade/suspect"
	"github.com/minibench/mini/runner/verdicts"
)

// Judgement is one verdict on an instance.
type Judgement struct {
	RunID  string         `json:"run_id"`
	Model  string         `json:"model_name_or_path"`
	Class  verdicts.Class `json:"class"`
	Reason string         `json:"reason,omitempty"`
	Hint   string         `json:"hint,omitempty"`
	// Stale says that the instance has submitted something else since.
	Stale   bool    `json:"stale,omitempty"`
	Seconds float64 `json:"duration_seconds"`
	Runs    int     `json:"runs"` // sandboxes that were made for it
	// RunList are these runs, the first of them first.
	RunList []JudgedRun `json:"run_list,omitempty"`
	// Passed and Failed count the tests that the row names, in the newest run
	// for the verdict.
	Passed int `json:"passed"`
	Failed int `json:"failed"`
	// FailedTests are those of that run, all of them.
	FailedTests *verdicts.FailedTests `json:"failed_tests,omitempty"`
	Flags       []suspect.Finding     `json:"flags,omitempty"`
	// Without is whether it is resolved when the flagged hunks are dropped.
	Without *bool `json:"resolved_without_suspect,omitempty"`
	// ForeignLog says that it rests on a log that was made elsewhere.
	ForeignLog bool `json:"foreign_log,omitempty"`
	// Gold and Noop are the baseline of the machine.
	Gold verdicts.Class `json:"gold,omitempty"`
	Noop verdicts.Class `json:"noop,omitempty"`
	// Files is the folder of the run's log, below that of the run.
	Files string `json:"files,omitempty"`

	newest time.Time
	took   bool // Seconds were spent on what the instance has submitted
}

// JudgedOnly is the detail of an instance that the folder has verdicts on, and
// no attempt: its patches are from elsewhere. Without verdicts it is false.
func JudgedOnly(found verdicts.Found, id string) (Detail, bool) {
	d := Detail{Format: GlanceFormat, Run: found.Dir, Row: Row{ID: id}, LastSteps: []LastStep{}}
	d.Judge(found, nil)
	return d, len(d.Verdicts) > 0
}

// Judge adds the verdicts on the instance, the newest last. The baseline is
// part of them, and a verdict of its own only where there is no other.
func (d *Detail) Judge(found verdicts.Found, own Submissions) {
	base := baselineOf(found)
	mine := slices.DeleteFunc(slices.Clone(found.Verdicts), func(v verdicts.Verdict) bool { return v.Instance != d.ID })
	others := slices.ContainsFunc(mine, func(v verdicts.Verdict) bool { return !isBaseline(v.Model) })
	for _, v := range mine {
		if others && isBaseline(v.Model) {
			continue
		}
		r := base.complete(v.Record)
		j := Judgement{
			RunID: r.RunID, Model: r.Model, Class: r.Class, Reason: r.Reason, Hint: r.Hint, Stale: own.stale(r), Seconds: r.Seconds,
			Runs: len(r.Runs), Flags: r.Flags, Without: r.ResolvedWithoutSuspect, ForeignLog: r.ForeignLog, Gold: r.Gold, Noop: r.Noop, took: own.has(r) && r.Sample <= 1 && r.Reused == "",
		}
		var unread []string
		j.RunList, unread = runsOf(found.Dir, r)
		d.Unread = append(d.Unread, unread...)
		for i, run := range r.Runs {
			if run.Purpose == verdicts.ForVerdict {
				j.FailedTests = j.RunList[i].FailedTests
				j.Passed, j.Failed, j.Files = run.Passed, run.Failed, run.Dir
			}
			if run.Start.After(j.newest) {
				j.newest = run.Start
			}
		}
		d.Verdicts = append(d.Verdicts, j)
	}
	slices.SortStableFunc(d.Verdicts, func(a, b Judgement) int { return a.newest.Compare(b.newest) })
}

// text shows a verdict; dir is the folder of the run.
func (j Judgement) text(dir string, width int) string {
	head := "verdict: " + words(string(j.Class))
	if j.Stale {
		head = "verdict on an earlier submission: " + words(string(j.Class))
	}
	switch {
	case j.Reason != "":
		head += ", " + j.Reason
	case j.Passed > 0:
		head += fmt.Sprintf(", all %s pass", Count(j.Passed, "test"))
	}
	about := fmt.Sprintf("evaluation %s of %s", bounded(j.RunID, 60), bounded(j.Model, 60))
	if j.Seconds > 0 {
		about += ", " + span(j.Seconds)
	}
	if j.Runs > 1 {
		about += fmt.Sprintf(", %d runs", j.Runs)
	}
	var b strings.Builder
	b.WriteString(paragraph(head, width, 0, 4))
	b.WriteString(paragraph(about, width, 2, 2))
	if j.Hint != "" {
		b.WriteString(paragraph(j.Hint, width, 2, 3))
	}
	b.WriteString(j.tests(width))
	for i, f := range j.Flags {
		if i == maxFlags {
			fmt.Fprintf(&b, "  ... and %d more flags; --json has all\n", len(j.Flags)-i)
			break
		}
		b.WriteString(paragraph(strings.TrimSuffix("flag: "+words(string(f.Flag))+" "+cmp.Or(f.File, f.Detail), " "), width, 2, 2))
	}
	if j.Without != nil {
		without := "not resolved"
		if *j.Without {
			without = "resolved"
		}
		b.WriteString(paragraph("without the flagged hunks: "+without, width, 2, 1))
	}
	if j.ForeignLog {
		b.WriteString(paragraph("graded by a log that was made elsewhere; its tests were not run here", width, 2, 1))
	}
	if q := (evaluate.Quarantined{Gold: j.Gold, Noop: j.Noop}); q.Gold != "" && q.Gold != verdicts.Resolved || q.Noop == verdicts.Resolved {
		b.WriteString(paragraph("quarantined here ("+wrongWith(q)+")", width, 2, 1))
	}
	if j.Files != "" {
		b.WriteString("  " + Printable(filepath.Join(dir, filepath.FromSlash(j.Files))) + "\n")
	}
	return b.String()
}

// JudgedRun is one run of the tests for a verdict.
type JudgedRun struct {
	Purpose verdicts.Purpose `json:"purpose"`
	Class   verdicts.Class   `json:"class"`
	Reason  string           `json:"reason,omitempty"`
	Passed  int              `json:"passed"`
	Failed  int              `json:"failed"`
	Seconds float64          `json:"duration_seconds"`
	// FailedTests are all of them; nil where none failed or its report.json is gone.
	FailedTests *verdicts.FailedTests `json:"failed_tests,omitempty"`
	// Files is the folder of the run's log, below that of the results.
	Files string `json:"files,omitempty"`
}

// Bounds of what is shown of the runs of a verdict; JSON has everything.
const (
	maxRuns  = 5
	maxTests = 10 // of each list
)

// runsOf are the runs of a record, and what of their reports cannot be read.
func runsOf(dir string, r verdicts.Record) (runs []JudgedRun, unread []string) {
	for _, a := range r.Runs {
		run := JudgedRun{
			Purpose: a.Purpose, Class: a.Class, Reason: a.Reason, Passed: a.Passed, Failed: a.Failed, Seconds: a.Seconds, Files: a.Dir,
		}
		if a.Failed > 0 {
			var err error
			if run.FailedTests, err = verdicts.ReadFailed(dir, a.Dir, r.Instance); err != nil {
				unread = append(unread, err.Error())
			}
		}
		runs = append(runs, run)
	}
	return runs, unread
}

// tests names the failed tests of a verdict, and how each run ended where there
// were several.
func (j Judgement) tests(width int) string {
	if len(j.RunList) == 1 {
		return failedText(j.RunList[0].FailedTests, width, 2)
	}
	var b strings.Builder
	var before *verdicts.FailedTests
	for i, run := range j.RunList {
		if i == maxRuns {
			fmt.Fprintf(&b, "  ... and %s; --json has all\n", Count(len(j.RunList)-i, "more run"))
			break
		}
		text, failed := run.text(i+1), run.FailedTests
		if failed != nil && before != nil && failed.Equal(*before) {
			text, failed = text+", the same tests", nil
		} else if failed != nil {
			before = failed
		}
		b.WriteString(paragraph(text, width, 2, 3))
		b.WriteString(failedText(failed, width, 4))
	}
	return b.String()
}

func (r JudgedRun) text(number int) string {
	text := fmt.Sprintf("run %d", number)
	switch r.Purpose {
	case verdicts.ForStability:
		text += " (rerun)"
	case verdicts.WithoutSuspect:
		text += " (without the flagged hunks)"
	}
	text += ": " + words(string(r.Class))
	switch {
	case r.Reason != "":
		text += ", " + r.Reason
	case r.Class == verdicts.Resolved && r.Passed > 0:
		text += fmt.Sprintf(", all %s pass", Count(r.Passed, "test"))
	}
	if r.Seconds > 0 {
		text += ", " + span(r.Seconds)
	}
	return text
}

// failedText names the first tests of each list, a line or two each.
func failedText(f *verdicts.FailedTests, width, indent int) string {
	var b strings.Builder
	for _, list := range FailedLists(f) {
		b.WriteString(paragraph(list.Head, width, indent, 1))
		for _, name := range list.Tests {
			b.WriteString(paragraph(name, width, indent+2, 2))
		}
		if list.More > 0 {
			fmt.Fprintf(&b, "%s... and %d more; --json has all\n", strings.Repeat(" ", indent+2), list.More)
		}
	}
	return b.String()
}

// FailedList is the tests of one list that failed, as many as are shown.
type FailedList struct {
	Head  string // what they are
	Tests []string
	More  int // tests that are not in Tests
}

// FailedLists are the lists of a run with a failed test. Names are as the row has
// them: they are to be made printable.
func FailedLists(f *verdicts.FailedTests) []FailedList {
	if f == nil {
		return nil
	}
	var lists []FailedList
	add := func(names []string, head string) {
		if n := len(names); n > 0 {
			shown := min(n, maxTests)
			lists = append(lists, FailedList{fmt.Sprintf(head, Count(n, "test")), names[:shown], n - shown})
		}
	}
	still := "%s of FAIL_TO_PASS still fail:"
	if len(f.FailToPass) == 1 {
		still = "%s of FAIL_TO_PASS still fails:"
	}
	add(f.FailToPass, still)
	add(f.PassToPass, "%s of PASS_TO_PASS broke:")
	return lists
}
