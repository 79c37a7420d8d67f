package tui

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

// around is what a run has around it.
type around struct {
	providers []control.Provider
	disk      control.Disk
}

// sum is what all endpoints let through together; no bound where one has none.
func (a around) sum() (s runner.ProviderState) {
	bounded := true
	for _, p := range a.providers {
		bounded = bounded && p.Limit > 0
		s.Limit += p.Limit
		s.InFlight += p.InFlight
		s.Waiting += p.Waiting
		s.Pause, s.Full = max(s.Pause, p.Pause), max(s.Full, p.Full)
	}
	if !bounded {
		s.Limit = 0
	}
	return s
}

// standing is the line about what is around the run: whether it is held back, what
// providers let through, and the room on disks.
func (b *board) standing(f frame, a around) string {
	line := counts{room: f.width - 2}
	switch b.halted {
	case runner.Pause:
		line.add("paused: p goes on", func(s string) string { return steps.Coloured(ansi.Yellow, s) })
	case runner.Drain:
		line.add("draining", func(s string) string { return steps.Coloured(ansi.Yellow, s) })
	}
	for i, text := range a.provider() {
		style := steps.Faint
		if i > 0 { // it lets nobody through
			style = func(s string) string { return steps.Coloured(ansi.Yellow, s) }
		}
		line.add(text, style)
	}
	for _, text := range a.room() {
		line.add(text, steps.Faint)
	}
	return line.String()
}

// provider is in few words what is asked of the providers.
func (a around) provider() []string {
	if len(a.providers) == 0 {
		return nil
	}
	s := a.sum()
	text := fmt.Sprintf("calls %d", s.InFlight)
	if s.Limit > 0 {
		text += fmt.Sprintf("/%d", s.Limit)
	}
	if s.Waiting > 0 {
		text += fmt.Sprintf("+%d wait", s.Waiting)
	}
	all := []string{text}
	left := func(seconds float64) string { return timeline.Clock(time.Duration(seconds * float64(time.Second))) }
	switch {
	case s.Full > s.Pause:
		all = append(all, "minute full "+left(s.Full))
	case s.Pause > 0:
		all = append(all, "asked to wait "+left(s.Pause))
	}
	return all
}

// room is what is free on disks, where that is known.
func (a around) room() (all []string) {
	d := a.disk
	if d.Run != nil {
		all = append(all, "disk "+gigabytes(*d.Run))
	}
	if d.Engine != nil {
		all = append(all, "engine "+gigabytes(*d.Engine))
	}
	if d.Budget != nil {
		taken := "?"
		if d.Images != nil {
			taken = strings.TrimSuffix(gigabytes(*d.Images), " GB")
		}
		all = append(all, "images "+taken+"/"+gigabytes(*d.Budget))
	}
	return all
}

// gigabytes is the room on a disk: what matters of it.
func gigabytes(bytes int64) string {
	g := float64(bytes) / 1e9
	if g < 10 {
		return fmt.Sprintf("%.1f GB", g)
	}
	return fmt.Sprintf("%.0f GB", g)
}
