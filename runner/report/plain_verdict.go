package report

import (
	"fmt"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
)

// verdict says how an evaluation ended. Beside a run, whose lines count
// instances, it is one of the lines about its instance.
func (p *Plain) verdict(e runner.Event) {
	if !e.Again {
		p.judged++
	}
	text := e.Verdict
	if e.Again {
		text += ", tried again"
	}
	text = fmt.Sprintf("%-14s  %s", text, seconds(e.Elapsed))
	if p.Patches > 0 {
		p.write("", 6, "[%d/%d] %s  %s", p.judged, p.Patches, p.name(e), text)
	} else {
		p.about(e, "verdict: %s", text)
	}
	if e.Text != "" && e.Verdict != string(evaluate.Resolved) {
		p.about(e, "  %s", e.Text)
	}
}

// evaluating says what a sandbox is made for.
func evaluating(purpose string) string {
	switch evaluate.Purpose(purpose) {
	case evaluate.ForStability:
		return "evaluating it again, since it failed"
	case evaluate.WithoutSuspect:
		return "evaluating it without what is suspicious"
	}
	return "evaluating"
}
