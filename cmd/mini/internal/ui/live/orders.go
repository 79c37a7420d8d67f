package live

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
)

// Controller executes orders for the displayed run and reports its resources. Its methods are
// safe for concurrent use.
type Controller interface {
	// Execute executes an order and returns a one-sentence result.
	Execute(o runner.ControlRequest) (string, error)
	// Resources returns the current state of the providers and disks. It does not block.
	Resources() ([]control.Provider, control.Disk)
	// JournalPath returns the path of an attempt's journal.
	JournalPath(instance string, attempt int) string
}

// selection is an instance on the screen that keys can act on.
type selection struct {
	name, instanceID string
	attempt          int
	row              int // index of its worker; -1 if it is not running
}

// selectable returns the instances that can be selected: the running ones, then those in the
// visible log.
func (b *board) selectable(notes int) []selection {
	var all []selection
	for i, w := range b.workers {
		if w.name != "" {
			all = append(all, selection{w.name, w.instanceID, w.attempt, i})
		}
	}
	for _, n := range b.shownLog(notes) {
		if n.instanceID != "" && n.attempt > 0 && !slices.ContainsFunc(all, func(p selection) bool { return p.name == n.name }) {
			all = append(all, selection{n.name, n.instanceID, n.attempt, -1})
		}
	}
	return all
}

// selections returns the selectable instances and the index of the selected one, or -1.
func (m model) selections() ([]selection, int) {
	m.board.mu.Lock()
	defer m.board.mu.Unlock()
	b := m.board.board
	all := b.selectable(m.frame.layout(len(b.workers)).log)
	return all, slices.IndexFunc(all, func(p selection) bool { return p.name == m.frame.selected })
}

// selected returns the instance that keys act on; false if none is selected.
func (m model) selected() (selection, bool) {
	if m.pane != nil {
		return m.pane.selection, true
	}
	all, i := m.selections()
	if i < 0 {
		return selection{}, false
	}
	return all[i], true
}

// moveSelection selects the next or previous instance. It reports whether there is any.
func (m *model) moveSelection(by, workers int) bool {
	all, at := m.selections()
	if len(all) == 0 {
		return false
	}
	rows := m.frame.layout(workers).rows
	top := m.frame.clamp(m.frame.top, workers)
	visible := func(p selection) bool { return p.row < 0 || p.row >= top && p.row < top+rows }
	switch {
	case at < 0 || !visible(all[at]):
		at = max(0, slices.IndexFunc(all, visible))
	default:
		at = max(0, min(at+by, len(all)-1))
	}
	m.frame.selected = all[at].name
	if row := all[at].row; row >= 0 && row < top {
		m.frame.top = row
	} else if row >= top+rows {
		m.frame.top = row - rows + 1
	}
	return true
}

// orderResultMsg is the result of an order.
type orderResultMsg struct{ text string }

// sendOrder returns a command that executes an order.
func (m model) sendOrder(a runner.Action, name string) tea.Cmd {
	controller := m.controller
	return func() tea.Msg {
		result, err := controller.Execute(runner.ControlRequest{Action: a, TaskID: name, Source: runner.SourceLiveView})
		if err != nil {
			result = err.Error()
		}
		return orderResultMsg{result}
	}
}

// handleOrderKey handles a key that gives an order or opens a pane. It reports whether the key
// is one.
func (m *model) handleOrderKey(key string) (tea.Cmd, bool) {
	switch key {
	case "p":
		if m.board.isHalted() {
			return m.sendOrder(runner.Resume, ""), true
		}
		return m.sendOrder(runner.Pause, ""), true
	case "D", "shift+d":
		return m.sendOrder(runner.Drain, ""), true
	case "K", "shift+k", "R", "shift+r", "f", "enter":
	default:
		return nil, false
	}
	p, ok := m.selected()
	switch {
	case !ok:
		m.frame.hint = "select an instance first, with j and k"
		return nil, true
	case (key == "K" || key == "shift+k") && m.board.hasEnded(p.name):
		m.frame.hint = p.name + " has ended"
		return nil, true
	case key == "K" || key == "shift+k":
		m.killTarget = p.name
		return nil, true
	case key == "R" || key == "shift+r":
		return m.sendOrder(runner.Requeue, p.name), true
	}
	return m.openPane(p), true
}

// handleKillAnswer handles the answer to the kill question.
func (m *model) handleKillAnswer(key string) tea.Cmd {
	name := m.killTarget
	m.killTarget = ""
	if yes, _ := ask.ParseYesNo(strings.TrimPrefix(key, "shift+"), false); yes {
		return m.sendOrder(runner.Kill, name)
	}
	m.frame.hint = "not killed"
	return nil
}

// openPane opens a pane that follows an attempt.
func (m *model) openPane(p selection) tea.Cmd {
	m.paneCount++
	m.pane = &followPane{selection: p, number: m.paneCount, path: m.controller.JournalPath(p.instanceID, p.attempt)}
	return m.pane.readAfter(0)
}

// handleJournal updates the pane with newly read records. If the instance has a newer attempt,
// the pane switches to it.
func (m *model) handleJournal(g journalMsg) tea.Cmd {
	if m.pane == nil || m.pane.number != g.number {
		return nil
	}
	next := m.pane.update(g)
	if w := m.board.workerFor(m.pane.selection.name); w != nil && w.attempt > m.pane.selection.attempt {
		m.pane.selection.attempt = w.attempt
		return m.openPane(m.pane.selection)
	}
	return next
}

// isHalted reports whether the run is paused or draining.
func (s *sharedBoard) isHalted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.board.halted != ""
}

// hasEnded reports whether an instance has ended without further retries.
func (s *sharedBoard) hasEnded(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.board.ended[name]
}

// workerFor returns a copy of an instance's row, or nil if it is not running.
func (s *sharedBoard) workerFor(name string) *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.board.workerIndex[name]; ok {
		w := s.board.workers[i]
		return &w
	}
	return nil
}
