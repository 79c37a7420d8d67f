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
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
	"github.com/minibench/mini/trajectories/timeline"
)

// followPane shows the steps of an attempt, also while it runs: replies, commands, and the ends
// of outputs.
type followPane struct {
	selection  selection
	number     int // identifies the pane, so that results for an earlier pane can be dropped
	path       string
	trajectory *browser.Trajectory // nil until it has been read
	lines      []string
	width      int    // width for which lines were rendered
	readError  string // error of the last read; empty if it succeeded
	linesBelow int    // number of lines below the visible part
}

const (
	maxPaneLines = 3000                   // approximate number of lines that the pane renders
	readInterval = 400 * time.Millisecond // minimum pause between two reads of the journal
	// readPauseFactor limits the time spent on reading: the pause after a read is at least this
	// many times as long as the read.
	readPauseFactor = 10
)

// folds limits how many lines of an item are shown: the end of outputs, else the beginning.
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
func (p *followPane) readAfter(delay time.Duration) tea.Cmd {
	number, previous, entry := p.number, p.trajectory, &browser.Entry{ID: p.selection.instanceID, Path: p.path}
	return tea.Tick(delay, func(start time.Time) tea.Msg {
		if previous != nil && !previous.HasChanged() {
			return journalMsg{number: number, trajectory: previous}
		}
		trajectory, err := browser.OpenTrajectory(entry)
		return journalMsg{number, trajectory, time.Since(start), err}
	})
}

// update sets the trajectory to a newly read one and returns a command for the next read.
func (p *followPane) update(msg journalMsg) tea.Cmd {
	p.readError = ""
	if msg.err != nil && !errors.Is(msg.err, fs.ErrNotExist) { // the journal may not exist yet
		p.readError = msg.err.Error()
	}
	if msg.trajectory != nil && msg.trajectory != p.trajectory {
		p.trajectory = msg.trajectory
		p.layout(p.width)
	}
	return p.readAfter(max(readInterval, readPauseFactor*msg.took))
}

// layout renders the lines for a width, about the newest maxPaneLines. If the user has scrolled
// up, the visible lines stay in place.
func (p *followPane) layout(width int) {
	renderer := steps.Renderer{Width: max(4, width-1), Fold: folds}
	oldCount := len(p.lines)
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
		name += strings.Repeat("─", max(0, width-1-terminal.Width(name)))
		lines := []string{steps.Faint(terminal.Truncate(name, width))}
		for _, l := range renderer.Step(s) {
			lines = append(lines, terminal.Truncate(" "+l.Text, width))
		}
		if p.lines = append(lines, p.lines...); len(p.lines) > maxPaneLines {
			break
		}
	}
	if p.linesBelow > 0 {
		p.linesBelow = max(0, p.linesBelow+len(p.lines)-oldCount)
	}
}

// scroll handles a scroll key. It stores the position relative to the end, which grows.
func (p *followPane) scroll(key string, page int) {
	end := max(0, len(p.lines)-page)
	top := max(0, end-p.linesBelow)
	top = max(0, min(scrollTo(key, top, page-1, end), end))
	p.linesBelow = end - top
}

// paneHeight returns the number of lines of steps that a pane shows.
func (f frame) paneHeight() int { return max(0, f.height-3) }

// draw renders the pane on the whole screen.
func (p *followPane) draw(f frame, t *batch.Task, footer string) string {
	if p.width != f.width {
		p.layout(f.width)
	}
	lines := make([]string, 0, f.height)
	title := fmt.Sprintf(" %s · attempt %d", sanitizeLine(p.selection.name), p.selection.attempt)
	title = terminal.JoinEnds(title, p.activityText(f, t)+" ", f.width)
	lines = append(lines, steps.Bold(terminal.Truncate(title, f.width)))
	room := f.paneHeight()
	end := max(0, len(p.lines)-p.linesBelow)
	lines = append(lines, p.lines[max(0, end-room):end]...)
	if len(p.lines) == 0 {
		lines = append(lines, steps.Faint(terminal.Truncate(" no steps yet", f.width)))
	}
	for len(lines) < f.height-2 {
		lines = append(lines, "")
	}
	lines = lines[:max(0, min(len(lines), f.height-2))]
	if f.height >= 2 {
		lines = append(lines, p.runningCommand(f, t))
	}
	return strings.Join(append(lines, footer), "\n")
}

// activityText describes what the attempt is doing.
func (p *followPane) activityText(f frame, t *batch.Task) string {
	if t == nil {
		return "not running"
	}
	text := fmt.Sprintf("%s %s", t.Phase, unit.Duration(f.now.Sub(t.PhaseStart).Truncate(time.Second)))
	if cost := formatDollars(t.Cost); cost != "" && !t.Ended {
		text += "  " + cost
	}
	return text
}

// runningCommand renders the line below the steps: the read error or the running command, which
// the journal does not have yet.
func (p *followPane) runningCommand(f frame, t *batch.Task) string {
	switch {
	case p.readError != "":
		return steps.Coloured(ansi.Yellow, terminal.Truncate(" "+sanitizeLine(p.readError), f.width))
	case t != nil && t.Phase == runner.PhaseRunning:
		return steps.Coloured(ansi.Green, terminal.Truncate(" $ "+sanitizeLine(t.Command), f.width))
	}
	return ""
}
