package tui

import (
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// shared is the board between those who tell it what happens and the model
// that draws it.
type shared struct {
	mu      sync.Mutex
	board   *board
	changed bool // since it was last drawn
}

// refresh asks for the board to be drawn as it is now.
type refresh struct{ now time.Time }

// model is the screen. Update does no input or output: what a key leads to is
// a command.
type model struct {
	shared    *shared
	frame     frame
	help      bool
	helpTop   int // first line of the help shown
	interrupt func()
	suspend   func()
}

// Init implements tea.Model.
func (model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.frame.width, m.frame.height = msg.Width, msg.Height
	case refresh:
		m.frame.now = msg.now
	case tea.KeyPressMsg:
		return m.key(msg.String())
	}
	return m, nil
}

func (m model) key(key string) (tea.Model, tea.Cmd) {
	m.frame.hint = ""
	switch key {
	case "ctrl+c":
		return m, act(m.interrupt)
	case "ctrl+z":
		return m, act(m.suspend)
	case "ctrl+l":
		return m, tea.ClearScreen
	case "?", "h":
		m.help, m.helpTop = !m.help, 0
	case "esc", "enter":
		m.help = false
	case "q":
		m.help = false
		m.frame.hint = "q does not end the run; Ctrl-C stops it in good order"
	}
	workers := m.shared.workers()
	if m.help {
		end := len(helpLines())
		m.helpTop = clampHelp(scrolled(key, m.helpTop, m.frame.height-2, end), m.frame.height)
	} else {
		page := m.frame.layout(workers).rows - 1
		m.frame.top = m.frame.clamp(scrolled(key, m.frame.top, page, workers), workers)
	}
	return m, nil
}

// scrolled is where a key leads from a line; end may be too far.
func scrolled(key string, top, page, end int) int {
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

func act(f func()) tea.Cmd {
	if f == nil {
		return nil
	}
	return func() tea.Msg { f(); return nil }
}

// View implements tea.Model.
func (m model) View() tea.View {
	v := tea.View{AltScreen: true, DisableBracketedPasteMode: true}
	switch {
	case m.frame.width <= 0 || m.frame.height <= 0:
	case m.help:
		v.Content = helpScreen(m.frame.width, m.frame.height, m.helpTop)
	default:
		v.Content = m.shared.draw(m.frame)
	}
	return v
}

func (s *shared) workers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.board.workers)
}

func (s *shared) draw(f frame) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = false
	return s.board.draw(f)
}
