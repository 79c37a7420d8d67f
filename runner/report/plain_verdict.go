package report

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
)

// verdict says how an evaluation ended. Beside a run, whose lines count
// instances, it is one of the lines about its instance.
func (p *Plain) verdict(e runner.Event) {
	if !e.Again {
		p.judged++
	}
	text := Judged(e)
	if p.Patches > 0 {
		p.write("", 6, "[%d/%d] %s  %s", p.judged, p.Patches, p.name(e), text)
	} else {
		p.about(e, "verdict: %s", text)
	}
}

// Judged is a verdict on a line: its class, how long it took, and why.
func Judged(e runner.Event) string {
	text := words(e.Verdict)
	if e.Again {
		text += ", tried again"
	}
	text = fmt.Sprintf("%-14s", text)
	if how := tookVerdict(e); how != "" {
		text += fmt.Sprintf("  %-6s", how)
	}
	if e.Text != "" && e.Verdict != string(verdicts.Resolved) {
		text += "  " + e.Text
	}
	return strings.TrimRight(text, " ")
}

// tookVerdict is how long an evaluation took, or that nothing had to be run.
func tookVerdict(e runner.Event) string {
	switch {
	case e.Elapsed > 0:
		return seconds(e.Elapsed)
	case verdicts.Class(e.Verdict).Final() && e.Verdict != string(verdicts.Empty):
		return "reused"
	}
	return ""
}

// evaluating says what a sandbox is made for.
func evaluating(purpose string) string {
	switch verdicts.Purpose(purpose) {
	case verdicts.ForStability:
		return "evaluating it again, since it failed"
	case verdicts.WithoutSuspect:
		return "evaluating it without what is suspicious"
	}
	return "evaluating"
}
