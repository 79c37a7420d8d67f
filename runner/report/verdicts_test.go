package report_test

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/savedlogs"
	"github.com/minibench/mini/runner/report"
)

func TestVerdicts(t *testing.T) {
	module, memory, crash := "missing_module", "out_of_memory", "the log does \x1b[2J what it should not, at some length, so that it takes more than a line"
	lines := []savedlogs.Line{
		{Path: "logs/a", Class: savedlogs.Resolved, Applied: true, Resolution: grade.ResolvedFull},
		{Path: "logs/b", Class: savedlogs.Unresolved, Applied: true, Resolution: grade.ResolvedPartial, Counts: savedlogs.Counts{
			FailToPass: savedlogs.Count{Success: 1, Failure: 2, Total: 3}, PassToPass: savedlogs.Count{Success: 1200, Total: 1200},
		}},
		{Path: "logs/c", Class: savedlogs.Unresolved, InfraReason: &module},
		{Path: "logs/d", Class: savedlogs.Unresolved},
		{Path: "logs/" + strings.Repeat("deep/", 12) + "e", Class: savedlogs.Infrastructure, InfraReason: &memory},
		{Path: "logs/f\x1b[31m", Class: savedlogs.Errored, Error: &crash},
		{Path: "logs/g", Class: savedlogs.Empty},
	}
	var totals savedlogs.Totals
	got := ""
	for _, l := range lines {
		totals.Add(l, 1)
		got += report.VerdictDoc(l).Text(80)
	}
	got += report.TotalsDoc(totals).Text(80)
	want := `resolved        logs/a
unresolved      logs/b  fixed 1 of 3, kept 1200 of 1200
unresolved      logs/c  no results in the log: missing_module
unresolved      logs/d  no results in the log
infrastructure  logs/` + strings.Repeat("deep/", 12) + `e
    out_of_memory
error           logs/f�[31m  the log does �[2J what it should not, at some
                             length, so that it takes more than a line
empty           logs/g  run without a patch
resolved        1
unresolved      3  1 partially resolved, 2 without results in the log, 1
                   missing_module
empty           1  run without a patch: patch.diff is empty
infrastructure  1  1 out_of_memory
error           1  the log cannot be read, or its parser crashed
20.0% (95% interval 3.6% to 62.4%) of 5 logs that could be graded
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for line := range strings.Lines(report.TotalsDoc(totals).Text(50)) {
		if ansi.StringWidth(strings.TrimSpace(line)) > 50 {
			t.Errorf("too wide: %q", line)
		}
	}
}

// A summary without verdicts has no rate.
func TestNoVerdicts(t *testing.T) {
	d := report.TotalsDoc(savedlogs.Totals{Logs: 1, Classes: map[savedlogs.Class]int{savedlogs.Errored: 1}})
	if text := d.Text(80); strings.Contains(text, "%") {
		t.Errorf("a rate of nothing:\n%s", text)
	}
}
