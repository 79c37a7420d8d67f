package tui

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// follow is the pane that shows an attempt as it grows: what the model said and ran,
// and the end of what came of it.
type follow struct {
	pick   pick
	number int // of the pane: what is read for an earlier one is not this one's
	tail   tail
	t      timeline.Timeline
	lines  []string
	width  int    // of the lines
	past   bool   // the beginning of the journal is left out
	failed string // why nothing is read; empty where something is
	up     int    // lines scrolled up from the end
}

const (
	maxFollowed = 3000 // lines, about, that can be scrolled to
	followEvery = 400 * time.Millisecond
)

// folded bounds what is shown of a step: the beginning of what was said, and the end
// of what was printed.
var folded = map[timeline.Kind]steps.Fold{
	timeline.Message: {Head: 8}, timeline.Reply: {Head: 8}, timeline.Command: {Head: 12}, timeline.Output: {Tail: 15},
}

// grown is what a journal has come to.
type grown struct {
	number  int
	tail    tail
	records []trajectories.Record
	more    bool
	err     error
}

// reads asks for what has come since, after a while.
func (p *follow) reads(after time.Duration) tea.Cmd {
	number, t := p.number, p.tail
	read := func(time.Time) tea.Msg {
		records, more, err := t.read()
		return grown{number, t, records, more, err}
	}
	if after <= 0 {
		return func() tea.Msg { return read(time.Time{}) }
	}
	return tea.Tick(after, read)
}

// grow takes in what was read, and asks for more.
func (p *follow) grow(g grown) tea.Cmd {
	p.tail, p.failed = g.tail, ""
	if g.err != nil && !errors.Is(g.err, fs.ErrNotExist) { // it is about to be made
		p.failed = g.err.Error()
	}
	p.past = p.past || len(p.t.Steps) == 0 && p.tail.offset > maxPast
	for _, r := range g.records {
		_ = p.t.Add(r) // what cannot be read is left out
	}
	if len(g.records) > 0 {
		p.layout(p.width)
	}
	if g.more {
		return p.reads(0)
	}
	return p.reads(followEvery)
}

// layout makes the lines anew. What is looked at stays where that is scrolled up.
func (p *follow) layout(width int) {
	style := steps.Style{Width: max(4, width-1), Fold: folded}
	before := len(p.lines)
	p.lines, p.width = nil, width
	all := p.t.All()
	for _, s := range slices.Backward(all) {
		name := s.Name
		if name == "" {
			name = fmt.Sprintf("step %d", s.Number)
		}
		name = " " + clean(strings.Join(append([]string{name}, p.t.Facts(s)...), " · ")) + " "
		lines := []string{steps.Faint(cut(name+strings.Repeat("─", max(0, width-1-screen.Width(name))), width))}
		for _, l := range style.Step(s) {
			lines = append(lines, cut(" "+l.Text, width))
		}
		if p.lines = append(lines, p.lines...); len(p.lines) > maxFollowed {
			break
		}
	}
	if p.past {
		said := steps.Faint(cut(" what came before is left out here; mini inspect has it", width))
		p.lines = slices.Insert(p.lines, 0, said)
	}
	if p.up > 0 {
		p.up = max(0, p.up+len(p.lines)-before)
	}
}

// scroll moves the pane; its end is where it grows.
func (p *follow) scroll(key string, page int) {
	end := max(0, len(p.lines)-page)
	top := max(0, end-p.up)
	top = max(0, min(scrolled(key, top, page-1, end), end))
	p.up = end - top
}

// followRoom is how many lines of a pane are for the attempt.
func (f frame) followRoom() int { return max(0, f.height-3) }

// draw is the pane on the whole screen.
func (p *follow) draw(f frame, w *worker, footer string) string {
	if p.width != f.width {
		p.layout(f.width)
	}
	lines := make([]string, 0, f.height)
	title := fmt.Sprintf(" %s · attempt %d", clean(p.pick.who), p.pick.attempt)
	lines = append(lines, steps.Bold(cut(beside(title, p.now(f, w)+" ", f.width), f.width)))
	room := f.followRoom()
	end := max(0, len(p.lines)-p.up)
	lines = append(lines, p.lines[max(0, end-room):end]...)
	if len(p.lines) == 0 {
		lines = append(lines, steps.Faint(cut(" nothing is there yet", f.width)))
	}
	for len(lines) < f.height-2 {
		lines = append(lines, "")
	}
	lines = lines[:max(0, min(len(lines), f.height-2))]
	if f.height >= 2 {
		lines = append(lines, p.running(f, w))
	}
	return strings.Join(append(lines, footer), "\n")
}

// now is what the attempt is in the middle of.
func (p *follow) now(f frame, w *worker) string {
	if w == nil {
		return "not running"
	}
	text := fmt.Sprintf("%s %s", w.phase, short(f.now.Sub(w.since)))
	if cost := dollars(w.cost); cost != "" {
		text += "  " + cost
	}
	return text
}

// running is the command that runs, of which the journal has nothing yet.
func (p *follow) running(f frame, w *worker) string {
	switch {
	case p.failed != "":
		return steps.Coloured(ansi.Yellow, cut(" "+clean(p.failed), f.width))
	case w != nil && w.current && w.phase == runner.Running:
		return steps.Coloured(ansi.Green, cut(" $ "+clean(w.command), f.width))
	}
	return ""
}
