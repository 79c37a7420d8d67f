package live

import (
	"fmt"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
)

// resources is the state of the model providers and disks.
type resources struct {
	providers []control.Provider
	disk      control.Disk
}

// totalProvider returns the sums of the counts and limits of all endpoints, and their longest
// waits. Limit is 0 if any endpoint is unlimited.
func (r resources) totalProvider() (total runner.ProviderState) {
	limited := true
	for _, p := range r.providers {
		limited = limited && p.Limit > 0
		total.Limit += p.Limit
		total.InFlight += p.InFlight
		total.Waiting += p.Waiting
		total.PauseSeconds = max(total.PauseSeconds, p.PauseSeconds)
		total.MinuteFullSeconds = max(total.MinuteFullSeconds, p.MinuteFullSeconds)
	}
	if !limited {
		total.Limit = 0
	}
	return total
}

// statusLine shows whether the run is halted, the provider limits, and the free disk space.
func (b *board) statusLine(f frame, r resources) string {
	line := countLine{room: f.width - 2}
	switch b.Halted {
	case runner.Pause:
		line.add("paused: p resumes", func(s string) string { return steps.Coloured(ansi.Yellow, s) })
	case runner.Drain:
		line.add("draining", func(s string) string { return steps.Coloured(ansi.Yellow, s) })
	}
	for i, text := range r.providerTexts() {
		style := steps.Faint
		if i > 0 { // a provider accepts no calls at the moment
			style = func(s string) string { return steps.Coloured(ansi.Yellow, s) }
		}
		line.add(text, style)
	}
	for _, text := range r.diskTexts() {
		line.add(text, steps.Faint)
	}
	return line.String()
}

// providerTexts describes the calls to the providers and, if a provider accepts none at the
// moment, how long that lasts.
func (r resources) providerTexts() []string {
	if len(r.providers) == 0 {
		return nil
	}
	total := r.totalProvider()
	text := fmt.Sprintf("calls %d", total.InFlight)
	if total.Limit > 0 {
		text += fmt.Sprintf("/%d", total.Limit)
	}
	if total.Waiting > 0 {
		text += fmt.Sprintf("+%d wait", total.Waiting)
	}
	texts := []string{text}
	switch {
	case total.MinuteFullSeconds > total.PauseSeconds:
		texts = append(texts, "rate limit "+unit.Seconds(total.MinuteFullSeconds))
	case total.PauseSeconds > 0:
		texts = append(texts, "asked to wait "+unit.Seconds(total.PauseSeconds))
	}
	return texts
}

// diskTexts describes the disk space that is known.
func (r resources) diskTexts() (texts []string) {
	d := r.disk
	if d.RunFree != nil {
		texts = append(texts, "disk "+unit.Size(*d.RunFree))
	}
	if d.EngineFree != nil {
		texts = append(texts, "engine "+unit.Size(*d.EngineFree))
	}
	if d.ImageBudget != nil {
		used := "?"
		if d.Images != nil {
			used = unit.Size(*d.Images)
		}
		texts = append(texts, "images "+used+" of "+unit.Size(*d.ImageBudget))
	}
	return texts
}
