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
