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
	// Execute executes an order and returns a sentence about its result.
	Execute(o runner.ControlRequest) (string, error)
	// Resources returns the current state of the providers and disks. It does not block.
	Resources() ([]control.Provider, control.Disk)
	// JournalPath returns the path of an attempt's journal.
	JournalPath(instance string, attempt int) string
}

// selection is an instance on the screen that the user can select.
type selection struct {
	name, instanceID string
	attempt          int
	row              int // index of its worker; -1 if it is not running
}

// selectable returns the instances that the user can select: the running ones, then those in the
// visible log.
func (b *board) selectable(logLines int) []selection {
	var all []selection
	for i, t := range b.Workers {
		if t != nil {
			all = append(all, selection{t.ID, t.Instance, t.Attempt, i})
		}
	}
	for _, entry := range b.shownLog(logLines) {
		isListed := slices.ContainsFunc(all, func(s selection) bool { return s.name == entry.name })
		if entry.instanceID != "" && entry.attempt > 0 && !isListed {
			all = append(all, selection{entry.name, entry.instanceID, entry.attempt, -1})
		}
	}
	return all
}

// selections returns the selectable instances and the index of the selected one, or -1.
func (m model) selections() ([]selection, int) {
	selectable := m.board.selectable(m.frame.layout(len(m.board.Workers)).log)
	return selectable, slices.IndexFunc(selectable, func(s selection) bool { return s.name == m.frame.selected })
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

// moveSelection selects the next or previous instance, or the first visible one if the selected
// one is not visible, and scrolls the table to it. It reports whether there is any instance to
// select.
func (m *model) moveSelection(step, workers int) bool {
	selectable, index := m.selections()
	if len(selectable) == 0 {
		return false
	}
	rows := m.frame.layout(workers).rows
	top := m.frame.clamp(m.frame.top, workers)
	visible := func(s selection) bool { return s.row < 0 || s.row >= top && s.row < top+rows }
	switch {
	case index < 0 || !visible(selectable[index]):
		index = max(0, slices.IndexFunc(selectable, visible))
	default:
		index = max(0, min(index+step, len(selectable)-1))
	}
	m.frame.selected = selectable[index].name
	if row := selectable[index].row; row >= 0 && row < top {
		m.frame.top = row
	} else if row >= top+rows {
		m.frame.top = row - rows + 1
	}
	return true
}

// orderResultMsg is the result of an order, for the footer.
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
// is such a key.
func (m *model) handleOrderKey(key string) (tea.Cmd, bool) {
	switch key {
	case "p":
		if m.board.Halted != "" {
			return m.sendOrder(runner.Resume, ""), true
		}
		return m.sendOrder(runner.Pause, ""), true
	case "D", "shift+d":
		return m.sendOrder(runner.Drain, ""), true
	case "K", "shift+k", "R", "shift+r", "f", "enter":
	default:
		return nil, false
	}
	target, ok := m.selected()
	switch {
	case !ok:
		m.frame.hint = "select an instance first, with j and k"
		return nil, true
	case (key == "K" || key == "shift+k") && m.board.Ended[target.name]:
		m.frame.hint = target.name + " has ended"
		return nil, true
	case key == "K" || key == "shift+k":
		m.killTarget = target.name
		return nil, true
	case key == "R" || key == "shift+r":
		return m.sendOrder(runner.Requeue, target.name), true
	}
	return m.openPane(target), true
}

// handleKillAnswer handles the key that answers the kill question.
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
func (m *model) openPane(target selection) tea.Cmd {
	m.paneCount++
	path := m.controller.JournalPath(target.instanceID, target.attempt)
	m.pane = &followPane{selection: target, number: m.paneCount, path: path}
	return m.pane.readAfter(0)
}

// handleJournal updates the pane with a journal that was read. If the instance has a newer
// attempt, it opens a pane of that attempt instead.
func (m *model) handleJournal(msg journalMsg) tea.Cmd {
	if m.pane == nil || m.pane.number != msg.number {
		return nil
	}
	next := m.pane.update(msg)
	if t := m.board.Task(m.pane.selection.name); t != nil && t.Attempt > m.pane.selection.attempt {
		m.pane.selection.attempt = t.Attempt
		return m.openPane(m.pane.selection)
	}
	return next
}
