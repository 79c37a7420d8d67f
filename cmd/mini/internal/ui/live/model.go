package live

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// refreshMsg requests a redraw.
type refreshMsg struct {
	now       time.Time
	resources resources
}

// model is the Bubble Tea model of the view. Update performs no I/O; it returns commands that do.
// Update and View hold the lock of the board.
type model struct {
	board      *board
	frame      frame
	help       bool
	helpTop    int // first visible line of the help
	interrupt  func()
	suspend    func()
	controller Controller  // executes orders
	killTarget string      // the instance whose kill awaits confirmation; empty if none
	pane       *followPane // the open attempt pane; nil if none
	paneCount  int         // number of panes opened so far
	hintSetAt  time.Time   // when frame.hint was set
}

// hintDuration is how long the footer shows the result of a key instead of the key hints.
const hintDuration = 8 * time.Second

// Init implements tea.Model. It resumes an open pane after Ctrl-Z.
func (m model) Init() tea.Cmd {
	if m.pane != nil {
		return m.pane.readAfter(0)
	}
	return nil
}

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.board.Lock()
	defer m.board.Unlock()
	if m.killTarget != "" && m.board.Ended[m.killTarget] {
		m.frame.hint, m.hintSetAt, m.killTarget = m.killTarget+" has ended", m.frame.now, ""
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.frame.width, m.frame.height = msg.Width, msg.Height
	case refreshMsg:
		m.frame.now, m.frame.resources = msg.now, msg.resources
		if msg.now.Sub(m.hintSetAt) > hintDuration {
			m.frame.hint = ""
		}
	case orderResultMsg:
		m.frame.hint, m.hintSetAt = msg.text, m.frame.now
	case journalMsg:
		cmd := m.handleJournal(msg)
		return m, cmd
	case tea.KeyPressMsg:
		return m.handleKey(msg.String())
	}
	return m, nil
}

func (m model) handleKey(key string) (tea.Model, tea.Cmd) {
	m.frame.hint, m.hintSetAt = "", m.frame.now
	switch key {
	case "ctrl+c":
		return m, callCmd(m.interrupt)
	case "ctrl+z":
		return m, callCmd(m.suspend)
	case "ctrl+l":
		return m, tea.ClearScreen
	}
	if m.killTarget != "" {
		return m, m.handleKillAnswer(key)
	}
	if !m.help {
		if m.pane != nil && slices.Contains([]string{"esc", "q", "f", "enter"}, key) {
			m.pane = nil
			return m, nil
		}
		if cmd, ok := m.handleOrderKey(key); ok {
			return m, cmd
		}
	}
	switch key {
	case "?", "h":
		m.help, m.helpTop = !m.help, 0
	case "esc", "enter":
		m.help = false
	case "q":
		m.help = false
		m.frame.hint = "q does not end the run; Ctrl-C stops it gracefully"
	}
	m.handleScrollKey(key)
	return m, nil
}

// handleScrollKey scrolls the help, the pane or the table, or selects the next or previous
// instance.
func (m *model) handleScrollKey(key string) {
	workers := len(m.board.Workers)
	step := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1}[key]
	switch {
	case m.help:
		end := len(helpLines())
		m.helpTop = clampHelp(scrollTo(key, m.helpTop, m.frame.height-2, end), m.frame.height)
	case m.pane != nil:
		m.pane.scroll(key, m.frame.paneHeight())
	case step != 0 && m.moveSelection(step, workers):
	default:
		page := m.frame.layout(workers).rows - 1
		m.frame.top = m.frame.clamp(scrollTo(key, m.frame.top, page, workers), workers)
	}
}

// scrollTo returns the first visible line after a scroll key. The caller must clamp the result.
func scrollTo(key string, top, page, end int) int {
	page = max(1, page)
	switch key {
	case "up", "k":
		return top - 1
	case "down", "j":
		return top + 1
	case "pgup", "b":
		return top - page
	case "pgdown", "space":
		return top + page
	case "home", "g":
		return 0
	case "end", "G", "shift+g":
		return end
	}
	return top
}

func callCmd(f func()) tea.Cmd {
	if f == nil {
		return nil
	}
	return func() tea.Msg { f(); return nil }
}

// View implements tea.Model.
func (m model) View() tea.View {
	m.board.Lock()
	defer m.board.Unlock()
	v := tea.View{AltScreen: true, DisableBracketedPasteMode: true}
	switch {
	case m.frame.width <= 0 || m.frame.height <= 0:
	case m.help:
		v.Content = helpScreen(m.frame.width, m.frame.height, m.helpTop)
	case m.pane != nil:
		v.Content = m.pane.draw(m.frame, m.board.Task(m.pane.selection.name), m.paneFooter())
	default:
		m.frame.killTarget, m.board.dirty = m.killTarget, false
		v.Content = m.board.draw(m.frame)
	}
	return v
}

// paneFooter returns the last line of the screen while a pane is open.
func (m model) paneFooter() string {
	f := m.frame
	switch f.killTarget = m.killTarget; {
	case f.killTarget != "":
		return f.killQuestion()
	case f.hint != "":
		return steps.Coloured(ansi.Yellow, terminal.Truncate(" "+sanitizeLine(f.hint), f.width))
	}
	return steps.Faint(terminal.Truncate(" Esc back   ↑↓ scroll   R requeue   K kill   Ctrl-C stops   ? help", f.width))
}
