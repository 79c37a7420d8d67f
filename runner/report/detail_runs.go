package report

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/runner/verdicts"
)

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
