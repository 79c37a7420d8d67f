package live

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/browser"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories/timeline"
)

// followPane shows the steps of a running attempt: replies, commands, and the ends of outputs.
type followPane struct {
	selection  selection
	number     int // identifies the pane: results for an earlier pane are dropped
	path       string
	trajectory *browser.Trajectory // nil until it has been read
	lines      []string
	width      int    // width that lines were laid out for
	readError  string // error of the last read; empty if it succeeded
	linesBelow int    // number of lines below the visible part
}

const (
	maxPaneLines = 3000 // approximate number of lines that can be scrolled to
	readInterval = 400 * time.Millisecond
	// readPauseFactor times the duration of a read is the pause before the next one, so that
	// long journals are read less often.
	readPauseFactor = 10
)

// folds bounds how much of a step is shown: the start of replies, the end of outputs.
var folds = map[timeline.Kind]steps.Fold{
	timeline.Message: {Head: 8}, timeline.Reply: {Head: 8}, timeline.Command: {Head: 12}, timeline.Output: {Tail: 15},
}

// journalMsg is the result of reading a journal.
type journalMsg struct {
	number     int
	trajectory *browser.Trajectory
	took       time.Duration
	err        error
}

// readAfter returns a command that reads the journal after a delay.
func (p *followPane) readAfter(after time.Duration) tea.Cmd {
	number, previous, item := p.number, p.trajectory, &browser.Entry{ID: p.selection.instanceID, Path: p.path}
	return tea.Tick(after, func(start time.Time) tea.Msg {
		if previous != nil && !previous.HasChanged() {
			return journalMsg{number: number, trajectory: previous}
		}
		t, err := browser.Open(item)
		return journalMsg{number, t, time.Since(start), err}
	})
}

// update sets the trajectory that was read and schedules the next read.
func (p *followPane) update(g journalMsg) tea.Cmd {
	p.readError = ""
	if g.err != nil && !errors.Is(g.err, fs.ErrNotExist) { // the journal is created soon
		p.readError = g.err.Error()
	}
	if g.trajectory != nil && g.trajectory != p.trajectory {
		p.trajectory = g.trajectory
		p.layout(p.width)
	}
	return p.readAfter(max(readInterval, readPauseFactor*g.took))
}

// layout lays out the lines for a width. If the pane is scrolled up, the visible lines stay.
func (p *followPane) layout(width int) {
	style := steps.Renderer{Width: max(4, width-1), Fold: folds}
	before := len(p.lines)
	p.lines, p.width = nil, width
	if p.trajectory == nil {
		return
	}
	for _, s := range slices.Backward(p.trajectory.AllSteps()) {
		name := s.Name
		if name == "" {
			name = fmt.Sprintf("step %d", s.Number)
		}
		name = " " + sanitizeLine(strings.Join(append([]string{name}, p.trajectory.StepStats(s)...), " · ")) + " "
		lines := []string{steps.Faint(truncate(name+strings.Repeat("─", max(0, width-1-terminal.Width(name))), width))}
		for _, l := range style.Step(s) {
			lines = append(lines, truncate(" "+l.Text, width))
		}
		if p.lines = append(lines, p.lines...); len(p.lines) > maxPaneLines {
			break
		}
	}
	if p.linesBelow > 0 {
		p.linesBelow = max(0, p.linesBelow+len(p.lines)-before)
	}
}

// scroll scrolls the pane, which is anchored at its end.
func (p *followPane) scroll(key string, page int) {
	end := max(0, len(p.lines)-page)
	top := max(0, end-p.linesBelow)
	top = max(0, min(scrollTo(key, top, page-1, end), end))
	p.linesBelow = end - top
}

// paneHeight returns the number of lines for steps in a pane.
func (f frame) paneHeight() int { return max(0, f.height-3) }

// draw renders the pane on the whole screen.
func (p *followPane) draw(f frame, w *worker, footer string) string {
	if p.width != f.width {
		p.layout(f.width)
	}
	lines := make([]string, 0, f.height)
	title := fmt.Sprintf(" %s · attempt %d", sanitizeLine(p.selection.name), p.selection.attempt)
	lines = append(lines, steps.Bold(truncate(joinEnds(title, p.activityText(f, w)+" ", f.width), f.width)))
	room := f.paneHeight()
	end := max(0, len(p.lines)-p.linesBelow)
	lines = append(lines, p.lines[max(0, end-room):end]...)
	if len(p.lines) == 0 {
		lines = append(lines, steps.Faint(truncate(" no steps yet", f.width)))
	}
	for len(lines) < f.height-2 {
		lines = append(lines, "")
	}
	lines = lines[:max(0, min(len(lines), f.height-2))]
	if f.height >= 2 {
		lines = append(lines, p.runningCommand(f, w))
	}
	return strings.Join(append(lines, footer), "\n")
}

// activityText describes what the attempt is doing.
func (p *followPane) activityText(f frame, w *worker) string {
	if w == nil {
		return "not running"
	}
	text := fmt.Sprintf("%s %s", w.phase, formatElapsed(f.now.Sub(w.phaseStart)))
	if cost := formatDollars(w.cost); cost != "" {
		text += "  " + cost
	}
	return text
}

// runningCommand shows the running command, which is not yet in the journal, or the read
// error.
func (p *followPane) runningCommand(f frame, w *worker) string {
	switch {
	case p.readError != "":
		return steps.Coloured(ansi.Yellow, truncate(" "+sanitizeLine(p.readError), f.width))
	case w != nil && w.isRunning && w.phase == runner.Running:
		return steps.Coloured(ansi.Green, truncate(" $ "+sanitizeLine(w.command), f.width))
	}
	return ""
}
