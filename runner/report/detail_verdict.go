package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
)

// VerdictDetail is one verdict on an instance.
type VerdictDetail struct {
	RunID  string         `json:"run_id"`
	Model  string         `json:"model_name_or_path"`
	Class  verdicts.Class `json:"class"`
	Reason string         `json:"reason,omitempty"`
	Hint   string         `json:"hint,omitempty"`
	// Stale reports that the instance has a newer submission.
	Stale   bool    `json:"stale,omitempty"`
	Seconds float64 `json:"duration_seconds"`
	Runs    int     `json:"runs"` // number of test runs
	// TestRuns lists the test runs, oldest first.
	TestRuns []TestRunDetail `json:"run_list,omitempty"`
	// Passed and Failed count the row's tests in the latest run with the
	// purpose ForVerdict. FailedTests lists the failed ones.
	Passed      int                   `json:"passed"`
	Failed      int                   `json:"failed"`
	FailedTests *verdicts.FailedTests `json:"failed_tests,omitempty"`
	Flags       []tampering.Finding   `json:"flags,omitempty"`
	// ResolvedWithoutSuspect reports whether the patch without its flagged
	// hunks resolves the instance.
	ResolvedWithoutSuspect *bool `json:"resolved_without_suspect,omitempty"`
	// ForeignLog reports that the verdict is based on a log made elsewhere.
	ForeignLog bool `json:"foreign_log,omitempty"`
	// Gold and Noop are the baseline classes of this machine.
	Gold verdicts.Class `json:"gold,omitempty"`
	Noop verdicts.Class `json:"noop,omitempty"`
	// Files is the folder of the log, relative to the run folder.
	Files string `json:"files,omitempty"`

	newest     time.Time
	countsTime bool // Seconds is the evaluation time of the current submission
}

// NewVerdictsDetail describes an instance with verdicts but without an attempt:
// its patches were made elsewhere. It returns false if there are no verdicts.
func NewVerdictsDetail(found verdicts.Set, id string) (Detail, bool) {
	d := Detail{Format: SummaryFormat, Run: found.Dir, Row: Row{ID: id}, LastSteps: []LastStep{}}
	d.AddVerdicts(found, nil)
	return d, len(d.Verdicts) > 0
}

// AddVerdicts adds the verdicts on the instance, newest last. Verdicts on the
// baseline patches are added only if there are no others.
func (d *Detail) AddVerdicts(found verdicts.Set, submissions Predictions) {
	base := baselineOf(found)
	matching := slices.DeleteFunc(slices.Clone(found.Verdicts), func(v verdicts.Verdict) bool {
		return v.Instance != d.ID
	})
	hasOthers := slices.ContainsFunc(matching, func(v verdicts.Verdict) bool { return !isBaseline(v.Model) })
	for _, v := range matching {
		if hasOthers && isBaseline(v.Model) {
			continue
		}
		r := base.withBaseline(v.Record)
		j := VerdictDetail{
			RunID: r.RunID, Model: r.Model, Class: r.Class, Reason: r.Reason, Hint: r.Hint,
			Stale: submissions.isStale(r), Seconds: r.Seconds, Runs: len(r.Runs), Flags: r.Flags,
			ResolvedWithoutSuspect: r.ResolvedWithoutSuspect, ForeignLog: r.ForeignLog, Gold: r.Gold, Noop: r.Noop,
			countsTime: submissions.matches(r) && r.Repetition <= 1 && r.ReusedFrom == "",
		}
		var unread []string
		j.TestRuns, unread = testRunDetails(found.Dir, r)
		d.Unreadable = append(d.Unreadable, unread...)
		for i, run := range r.Runs {
			if run.Purpose == verdicts.ForVerdict {
				j.FailedTests = j.TestRuns[i].FailedTests
				j.Passed, j.Failed, j.Files = run.Passed, run.Failed, run.Dir
			}
			if run.Start.After(j.newest) {
				j.newest = run.Start
			}
		}
		d.Verdicts = append(d.Verdicts, j)
	}
	slices.SortStableFunc(d.Verdicts, func(a, b VerdictDetail) int { return a.newest.Compare(b.newest) })
}

// text formats a verdict. dir is the run folder.
func (j VerdictDetail) text(dir string, width int) string {
	head := "verdict: " + withSpaces(string(j.Class))
	if j.Stale {
		head = "verdict on an earlier submission: " + withSpaces(string(j.Class))
	}
	switch {
	case j.Reason != "":
		head += ", " + j.Reason
	case j.Passed > 0:
		head += fmt.Sprintf(", all %s pass", text.Count(j.Passed, "test"))
	}
	about := fmt.Sprintf("evaluation %s of %s", truncate(j.RunID, 60), truncate(j.Model, 60))
	if j.Seconds > 0 {
		about += ", " + durationText(j.Seconds)
	}
	if j.Runs > 1 {
		about += fmt.Sprintf(", %d runs", j.Runs)
	}
	var b strings.Builder
	b.WriteString(table.Paragraph(head, width, 0, 4))
	b.WriteString(table.Paragraph(about, width, 2, 2))
	if j.Hint != "" {
		b.WriteString(table.Paragraph(j.Hint, width, 2, 3))
	}
	b.WriteString(j.testsText(width))
	for i, f := range j.Flags {
		if i == maxFlags {
			fmt.Fprintf(&b, "  ... and %d more flags; --json shows all\n", len(j.Flags)-i)
			break
		}
		text := "flag: " + withSpaces(string(f.Flag)) + " " + cmp.Or(f.File, f.Detail)
		b.WriteString(table.Paragraph(strings.TrimSuffix(text, " "), width, 2, 2))
	}
	if j.ResolvedWithoutSuspect != nil {
		without := "not resolved"
		if *j.ResolvedWithoutSuspect {
			without = "resolved"
		}
		b.WriteString(table.Paragraph("without the flagged hunks: "+without, width, 2, 1))
	}
	if j.ForeignLog {
		b.WriteString(table.Paragraph("graded from a log made elsewhere; the tests were not run here", width, 2, 1))
	}
	if (verdicts.Record{Gold: j.Gold, Noop: j.Noop}).IsQuarantined() {
		reason := quarantineReason(evaluate.Quarantined{Gold: j.Gold, Noop: j.Noop})
		b.WriteString(table.Paragraph("quarantined here ("+reason+")", width, 2, 1))
	}
	if j.Files != "" {
		b.WriteString("  " + text.Printable(filepath.Join(dir, filepath.FromSlash(j.Files))) + "\n")
	}
	return b.String()
}

// TestRunDetail is one test run of a verdict.
type TestRunDetail struct {
	Purpose verdicts.Purpose `json:"purpose"`
	Class   verdicts.Class   `json:"class"`
	Reason  string           `json:"reason,omitempty"`
	Passed  int              `json:"passed"`
	Failed  int              `json:"failed"`
	Seconds float64          `json:"duration_seconds"`
	// FailedTests lists the failed tests; nil if there are none or report.json
	// is missing.
	FailedTests *verdicts.FailedTests `json:"failed_tests,omitempty"`
	// Files is the folder of the log, relative to the run folder.
	Files string `json:"files,omitempty"`
}

// Limits of the shown runs of a verdict. The JSON form has all.
const (
	maxRuns  = 5
	maxTests = 10 // for each list
)

// testRunDetails describes the runs of a record. unreadable lists the errors of
// their reports.
func testRunDetails(dir string, r verdicts.Record) (runs []TestRunDetail, unread []string) {
	for _, a := range r.Runs {
		run := TestRunDetail{
			Purpose: a.Purpose, Class: a.Class, Reason: a.Reason, Passed: a.Passed, Failed: a.Failed,
			Seconds: a.Seconds, Files: a.Dir,
		}
		if a.Failed > 0 {
			var err error
			if run.FailedTests, err = verdicts.ReadFailedTests(dir, a.Dir, r.Instance); err != nil {
				unread = append(unread, err.Error())
			}
		}
		runs = append(runs, run)
	}
	return runs, unread
}

// testsText lists the failed tests of a verdict, and the result of each run if
// there are several.
func (j VerdictDetail) testsText(width int) string {
	if len(j.TestRuns) == 1 {
		return failedText(j.TestRuns[0].FailedTests, width, 2)
	}
	var b strings.Builder
	var before *verdicts.FailedTests
	for i, run := range j.TestRuns {
		if i == maxRuns {
			fmt.Fprintf(&b, "  ... and %s; --json shows all\n", text.Count(len(j.TestRuns)-i, "more run"))
			break
		}
		text, failed := run.text(i+1), run.FailedTests
		if failed != nil && before != nil && failed.Equal(*before) {
			text, failed = text+", the same tests", nil
		} else if failed != nil {
			before = failed
		}
		b.WriteString(table.Paragraph(text, width, 2, 3))
		b.WriteString(failedText(failed, width, 4))
	}
	return b.String()
}

func (r TestRunDetail) text(number int) string {
	line := fmt.Sprintf("run %d", number)
	switch r.Purpose {
	case verdicts.ForRerun:
		line += " (rerun)"
	case verdicts.WithoutSuspect:
		line += " (without the flagged hunks)"
	}
	line += ": " + withSpaces(string(r.Class))
	switch {
	case r.Reason != "":
		line += ", " + r.Reason
	case r.Class == verdicts.Resolved && r.Passed > 0:
		line += fmt.Sprintf(", all %s pass", text.Count(r.Passed, "test"))
	}
	if r.Seconds > 0 {
		line += ", " + durationText(r.Seconds)
	}
	return line
}

// failedText lists the first tests of each list.
func failedText(f *verdicts.FailedTests, width, indent int) string {
	var b strings.Builder
	for _, list := range FailedLists(f) {
		b.WriteString(table.Paragraph(list.Head, width, indent, 1))
		for _, name := range list.Tests {
			b.WriteString(table.Paragraph(name, width, indent+2, 2))
		}
		if list.More > 0 {
			fmt.Fprintf(&b, "%s... and %d more; --json shows all\n", strings.Repeat(" ", indent+2), list.More)
		}
	}
	return b.String()
}

// FailedList is the shown part of one list of failed tests.
type FailedList struct {
	Head  string // heading
	Tests []string
	More  int // number of tests that are not in Tests
}

// FailedLists returns the lists with failed tests of a run. Test names are
// unmodified; call Printable before printing them.
func FailedLists(f *verdicts.FailedTests) []FailedList {
	if f == nil {
		return nil
	}
	var lists []FailedList
	add := func(names []string, head string) {
		if n := len(names); n > 0 {
			shown := min(n, maxTests)
			lists = append(lists, FailedList{fmt.Sprintf(head, text.Count(n, "test")), names[:shown], n - shown})
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
