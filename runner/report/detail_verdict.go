package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
)

// VerdictDetail is one verdict on an instance.
type VerdictDetail struct {
	RunID string `json:"run_id"`
	Model string `json:"model_name_or_path"`
	// Repetition is the repetition that made the patch; 0 if there is only one.
	Repetition int            `json:"sample,omitempty"`
	Class      verdicts.Class `json:"class"`
	// Rewards, SharedRewards and Steps are those of a Harbor task; see verdicts.Record.
	Rewards       map[string]float64     `json:"rewards,omitempty"`
	SharedRewards map[string]float64     `json:"shared_rewards,omitempty"`
	Steps         []verdicts.StepVerdict `json:"steps,omitempty"`
	Reason        string                 `json:"reason,omitempty"`
	Hint          string                 `json:"hint,omitempty"`
	// Stale reports whether the verdict is on an earlier submission.
	Stale   bool    `json:"stale,omitempty"`
	Seconds float64 `json:"duration_seconds"`
	Runs    int     `json:"runs"` // number of test runs
	// TestRuns lists the test runs, oldest first.
	TestRuns []TestRunDetail `json:"run_list,omitempty"`
	// Passed and Failed count the tests that the row names in the newest run
	// with the purpose ForVerdict. FailedTests lists the failed ones.
	Passed      int                   `json:"passed"`
	Failed      int                   `json:"failed"`
	FailedTests *verdicts.FailedTests `json:"failed_tests,omitempty"`
	Flags       []tampering.Finding   `json:"flags,omitempty"`
	// ResolvedWithoutSuspect reports whether the patch without its flagged files
	// resolves the instance.
	ResolvedWithoutSuspect *bool `json:"resolved_without_suspect,omitempty"`
	// Gold and Noop are the baseline classes of this machine.
	Gold verdicts.Class `json:"gold,omitempty"`
	Noop verdicts.Class `json:"noop,omitempty"`
	// Files is the folder of the log, relative to the run folder.
	Files string `json:"files,omitempty"`

	newest     time.Time // start of the newest test run
	countsTime bool      // whether Seconds is the evaluation time of the current submission
}

// NewVerdictsDetail describes an instance that has verdicts but no attempt in the
// folder, because its patches were made elsewhere. It returns false if there are no
// verdicts.
func NewVerdictsDetail(set verdicts.Set, id string) (Detail, bool) {
	d := Detail{Format: SummaryFormat, Run: set.Dir, Row: Row{ID: id}, LastSteps: []LastStep{}}
	d.AddVerdicts(set, nil)
	return d, len(d.Verdicts) > 0
}

// AddVerdicts adds the verdicts on the instance, ordered by repetition, newest last.
// It adds verdicts on the baseline patches only if there are no others.
func (d *Detail) AddVerdicts(set verdicts.Set, submissions Predictions) {
	baselines := baselineOf(set)
	matching := slices.DeleteFunc(slices.Clone(set.Verdicts), func(v verdicts.Verdict) bool {
		return v.Instance != d.ID
	})
	hasOthers := slices.ContainsFunc(matching, func(v verdicts.Verdict) bool { return !isBaseline(v.Model) })
	several := len(d.patchBytes) > 1 || slices.ContainsFunc(matching, func(v verdicts.Verdict) bool { return v.Repetition > 1 })
	for _, v := range matching {
		if hasOthers && isBaseline(v.Model) {
			continue
		}
		record := baselines.withBaseline(v.Record)
		detail := VerdictDetail{
			RunID: record.RunID, Model: record.Model, Class: record.Class, Rewards: record.Rewards, SharedRewards: record.SharedRewards, Steps: record.Steps, Reason: record.Reason, Hint: record.Hint,
			Stale: submissions.isStale(record), Seconds: record.Seconds, Runs: len(record.Runs), Flags: record.Flags,
			ResolvedWithoutSuspect: record.ResolvedWithoutSuspect, Gold: record.Gold, Noop: record.Noop,
			countsTime: submissions.matches(record) && record.Repetition <= 1 && record.ReusedFrom == "",
		}
		if several && !isBaseline(record.Model) {
			detail.Repetition = max(1, record.Repetition)
		}
		if record.Repetition > 1 { // predictions are of the first repetition
			size, ok := d.patchBytes[record.Repetition]
			detail.Stale = ok && size != record.Basis.PatchBytes
		}
		var unreadable []string
		detail.TestRuns, unreadable = testRunDetails(set.Dir, record)
		d.Unreadable = append(d.Unreadable, unreadable...)
		for i, run := range record.Runs {
			if run.Purpose == verdicts.ForVerdict {
				detail.FailedTests = detail.TestRuns[i].FailedTests
				detail.Passed, detail.Failed, detail.Files = run.Passed, run.Failed, run.Dir
			}
			if run.Start.After(detail.newest) {
				detail.newest = run.Start
			}
		}
		d.Verdicts = append(d.Verdicts, detail)
	}
	slices.SortStableFunc(d.Verdicts, func(a, b VerdictDetail) int {
		return cmp.Or(cmp.Compare(a.Repetition, b.Repetition), a.newest.Compare(b.newest))
	})
}

// rewardsText lists rewards by name.
func rewardsText(rewards map[string]float64) string {
	data, err := json.Marshal(rewards)
	if err != nil {
		return "unknown"
	}
	return string(data)
}

// add adds a verdict. dir is the run folder.
func (v VerdictDetail) add(d *doc.Doc, dir string) {
	head := "verdict"
	if v.Repetition > 0 {
		head += fmt.Sprintf(" (#%d)", v.Repetition)
	}
	if v.Stale {
		head += " on an earlier submission"
	}
	head += ": " + withSpaces(string(v.Class))
	switch {
	case v.Reason != "":
		head += ", " + v.Reason
	case len(v.Rewards) > 0:
		head += ", rewards " + rewardsText(v.Rewards)
	case v.Passed > 0:
		head += fmt.Sprintf(", all %s pass", text.Count(v.Passed, "test"))
	}
	about := fmt.Sprintf("evaluation %s of %s", truncate(v.RunID, 60), truncate(v.Model, 60))
	if v.Seconds > 0 {
		about += ", " + unit.Seconds(v.Seconds)
	}
	if v.Runs > 1 {
		about += fmt.Sprintf(", %d runs", v.Runs)
	}
	d.Paragraph(head, 0, 4)
	d.Paragraph(about, 2, 2)
	if len(v.SharedRewards) > 0 {
		d.Paragraph("in the container of the agent: rewards "+rewardsText(v.SharedRewards), 2, 4)
	}
	for _, s := range v.Steps {
		d.Paragraph(fmt.Sprintf("step %s: %s, %s", s.Name, withSpaces(string(s.Class)), cmp.Or(s.Reason, "rewards "+rewardsText(s.Rewards))), 2, 4)
	}
	d.Paragraph(v.Hint, 2, 3)
	v.addTests(d)
	for i, f := range v.Flags {
		if i == maxFlags {
			d.Line(2, "... and %d more flags; --json shows all", len(v.Flags)-i)
			break
		}
		text := "flag: " + withSpaces(string(f.Flag)) + " " + cmp.Or(f.File, f.Detail)
		d.Paragraph(strings.TrimSuffix(text, " "), 2, 2)
	}
	if v.ResolvedWithoutSuspect != nil {
		without := "not resolved"
		if *v.ResolvedWithoutSuspect {
			without = "resolved"
		}
		d.Paragraph("without the flagged hunks: "+without, 2, 1)
	}
	if (verdicts.Record{Gold: v.Gold, Noop: v.Noop}).IsQuarantined() {
		reason := quarantineReason(evaluate.Quarantined{Gold: v.Gold, Noop: v.Noop})
		d.Paragraph("quarantined here ("+reason+")", 2, 1)
	}
	if v.Files != "" {
		d.Line(2, "%s", filepath.Join(dir, filepath.FromSlash(v.Files)))
	}
}

// TestRunDetail is one test run of a verdict.
type TestRunDetail struct {
	Purpose verdicts.Purpose `json:"purpose"`
	Class   verdicts.Class   `json:"class"`
	Reason  string           `json:"reason,omitempty"`
	Passed  int              `json:"passed"`
	Failed  int              `json:"failed"`
	Seconds float64          `json:"duration_seconds"`
	// FailedTests lists the failed tests; nil if no test failed or report.json is
	// missing.
	FailedTests *verdicts.FailedTests `json:"failed_tests,omitempty"`
	// Files is the folder of the log, relative to the run folder.
	Files string `json:"files,omitempty"`
}

// Limits of the text form of a verdict. The JSON form has all runs and tests.
const (
	maxRuns  = 5
	maxTests = 10 // in each list of failed tests
)

// testRunDetails describes the runs of a record. unreadable has the errors of
// reports that cannot be read.
func testRunDetails(dir string, r verdicts.Record) (runs []TestRunDetail, unreadable []string) {
	for _, run := range r.Runs {
		detail := TestRunDetail{
			Purpose: run.Purpose, Class: run.Class, Reason: run.Reason, Passed: run.Passed, Failed: run.Failed,
			Seconds: run.Seconds, Files: run.Dir,
		}
		if run.Failed > 0 {
			var err error
			if detail.FailedTests, err = verdicts.ReadFailedTests(dir, run.Dir, r.Instance); err != nil {
				unreadable = append(unreadable, err.Error())
			}
		}
		runs = append(runs, detail)
	}
	return runs, unreadable
}

// addTests lists the failed tests of a verdict. If there are several runs, it lists
// the result and the failed tests of each.
func (v VerdictDetail) addTests(d *doc.Doc) {
	if len(v.TestRuns) == 1 {
		addFailed(d, v.TestRuns[0].FailedTests, 2)
		return
	}
	var previous *verdicts.FailedTests
	for i, run := range v.TestRuns {
		if i == maxRuns {
			d.Line(2, "... and %s; --json shows all", text.Count(len(v.TestRuns)-i, "more run"))
			break
		}
		text, failed := run.text(i+1), run.FailedTests
		if failed != nil && previous != nil && failed.Equal(*previous) {
			text, failed = text+", the same tests", nil
		} else if failed != nil {
			previous = failed
		}
		d.Paragraph(text, 2, 3)
		addFailed(d, failed, 4)
	}
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
		line += ", " + unit.Seconds(r.Seconds)
	}
	return line
}

// addFailed adds the lists of failed tests.
func addFailed(d *doc.Doc, f *verdicts.FailedTests, indent int) {
	for _, list := range FailedLists(f) {
		d.Paragraph(list.Head, indent, 1)
		for _, name := range list.Tests {
			d.Paragraph(name, indent+2, 2)
		}
		if list.More > 0 {
			d.Line(indent+2, "... and %d more; --json shows all", list.More)
		}
	}
}

// FailedList is one list of failed tests, shortened for display.
type FailedList struct {
	Head  string // heading
	Tests []string
	More  int // number of tests that are not in Tests
}

// FailedLists returns the lists of failed tests of a run. Call text.Printable before
// printing the names of tests, which are not sanitized.
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
