package tui

import (
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
)

// shared is the board between those who tell it what happens and the model
// that draws it.
type shared struct {
	mu      sync.Mutex
	board   *board
	changed bool // since it was last drawn
}

// refresh asks for the board to be drawn as it is now.
type refresh struct {
	now    time.Time
	around around
}

// model is the screen. Update does no input or output: what a key leads to is
// a command.
type model struct {
	shared    *shared
	frame     frame
	help      bool
	helpTop   int // first line of the help shown
	interrupt func()
	suspend   func()
	desk      Desk    // takes orders
	asked     string  // the instance that is killed with y; empty where none is asked about
	follow    *follow // the pane on top; nil while there is none
	panes     int     // so far
	hinted    time.Time
}

// hintFor is how long what a key led to stands in the place of the keys.
const hintFor = 8 * time.Second

// Init implements tea.Model. A pane goes on after Ctrl-Z.
func (m model) Init() tea.Cmd {
	if m.follow != nil {
		return m.follow.reads(0)
	}
	return nil
}

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if m.asked != "" && m.shared.ended(m.asked) {
		m.frame.hint, m.hinted, m.asked = m.asked+" has ended", m.frame.now, ""
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.frame.width, m.frame.height = msg.Width, msg.Height
	case refresh:
		m.frame.now, m.frame.around = msg.now, msg.around
		if msg.now.Sub(m.hinted) > hintFor {
			m.frame.hint = ""
		}
	case followedOrder:
		m.frame.hint, m.hinted = msg.text, m.frame.now
	case grown:
		cmd := m.grew(msg)
		return m, cmd
	case tea.KeyPressMsg:
		return m.key(msg.String())
	}
	return m, nil
}

func (m model) key(key string) (tea.Model, tea.Cmd) {
	m.frame.hint, m.hinted = "", m.frame.now
	switch key {
	case "ctrl+c":
		return m, act(m.interrupt)
	case "ctrl+z":
		return m, act(m.suspend)
	case "ctrl+l":
		return m, tea.ClearScreen
	}
	if m.asked != "" {
		return m, m.answer(key)
	}
	if !m.help {
		if m.follow != nil && slices.Contains([]string{"esc", "q", "f", "enter"}, key) {
			m.follow = nil
			return m, nil
		}
		if cmd, ok := m.steer(key); ok {
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
		m.frame.hint = "q does not end the run; Ctrl-C stops it in good order"
	}
	m.move(key)
	return m, nil
}

// move scrolls what is on the screen, or moves from one instance to the next.
func (m *model) move(key string) {
	workers := m.shared.workers()
	by := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1}[key]
	switch {
	case m.help:
		end := len(helpLines())
		m.helpTop = clampHelp(scrolled(key, m.helpTop, m.frame.height-2, end), m.frame.height)
	case m.follow != nil:
		m.follow.scroll(key, m.frame.followRoom())
	case by != 0 && m.choose(by, workers):
	default:
		page := m.frame.layout(workers).rows - 1
		m.frame.top = m.frame.clamp(scrolled(key, m.frame.top, page, workers), workers)
	}
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
	case m.follow != nil:
		v.Content = m.follow.draw(m.frame, m.shared.workerOf(m.follow.pick.who), m.footerOfPane())
	default:
		m.frame.asked = m.asked
		v.Content = m.shared.draw(m.frame)
	}
	return v
}

// footerOfPane is the last line beneath a pane.
func (m model) footerOfPane() string {
	f := m.frame
	switch f.asked = m.asked; {
	case f.asked != "":
		return f.question()
	case f.hint != "":
		return steps.Coloured(ansi.Yellow, cut(" "+clean(f.hint), f.width))
	}
	return steps.Faint(cut(" Esc back   ↑↓ scroll   R requeue   K kill   Ctrl-C stops   ? help", f.width))
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
