package live

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/trajectories/timeline"
)

// resources is the state of the model providers and disks.
type resources struct {
	providers []control.Provider
	disk      control.Disk
}

// totalProvider sums the state of all endpoints; Limit is 0 if any endpoint is unlimited.
func (a resources) totalProvider() (s runner.ProviderState) {
	bounded := true
	for _, p := range a.providers {
		bounded = bounded && p.Limit > 0
		s.Limit += p.Limit
		s.InFlight += p.InFlight
		s.Waiting += p.Waiting
		s.PauseSeconds, s.MinuteFullSeconds = max(s.PauseSeconds, p.PauseSeconds), max(s.MinuteFullSeconds, p.MinuteFullSeconds)
	}
	if !bounded {
		s.Limit = 0
	}
	return s
}

// statusLine shows whether the run is halted, the provider limits, and the free disk space.
func (b *board) statusLine(f frame, a resources) string {
	line := countLine{room: f.width - 2}
	switch b.halted {
	case runner.Pause:
		line.add("paused: p resumes", func(s string) string { return steps.Coloured(ansi.Yellow, s) })
	case runner.Drain:
		line.add("draining", func(s string) string { return steps.Coloured(ansi.Yellow, s) })
	}
	for i, text := range a.providerTexts() {
		style := steps.Faint
		if i > 0 { // the provider accepts no calls now
			style = func(s string) string { return steps.Coloured(ansi.Yellow, s) }
		}
		line.add(text, style)
	}
	for _, text := range a.diskTexts() {
		line.add(text, steps.Faint)
	}
	return line.String()
}

// providerTexts describes the calls to the providers.
func (a resources) providerTexts() []string {
	if len(a.providers) == 0 {
		return nil
	}
	s := a.totalProvider()
	text := fmt.Sprintf("calls %d", s.InFlight)
	if s.Limit > 0 {
		text += fmt.Sprintf("/%d", s.Limit)
	}
	if s.Waiting > 0 {
		text += fmt.Sprintf("+%d wait", s.Waiting)
	}
	all := []string{text}
	left := func(seconds float64) string {
		return timeline.FormatDuration(time.Duration(seconds * float64(time.Second)))
	}
	switch {
	case s.MinuteFullSeconds > s.PauseSeconds:
		all = append(all, "rate limit "+left(s.MinuteFullSeconds))
	case s.PauseSeconds > 0:
		all = append(all, "asked to wait "+left(s.PauseSeconds))
	}
	return all
}

// diskTexts describes the disk space that is known.
func (a resources) diskTexts() (all []string) {
	d := a.disk
	if d.RunFree != nil {
		all = append(all, "disk "+formatGigabytes(*d.RunFree))
	}
	if d.EngineFree != nil {
		all = append(all, "engine "+formatGigabytes(*d.EngineFree))
	}
	if d.ImageBudget != nil {
		taken := "?"
		if d.Images != nil {
			taken = strings.TrimSuffix(formatGigabytes(*d.Images), " GB")
		}
		all = append(all, "images "+taken+"/"+formatGigabytes(*d.ImageBudget))
	}
	return all
}

// formatGigabytes formats a disk size.
func formatGigabytes(bytes int64) string {
	g := float64(bytes) / 1e9
	if g < 10 {
		return fmt.Sprintf("%.1f GB", g)
	}
	return fmt.Sprintf("%.0f GB", g)
}
