package screen

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/chat"
)

// key does what a key means.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	escaped := m.escaped
	m.escaped = false
	switch msg.String() {
	case "enter":
		if m.multi() && !escaped {
			m.input.newline()
			break
		}
		m.enter()
	case "alt+enter":
		if m.multi() {
			m.enter()
			break
		}
		m.input.newline()
	case "shift+enter", "ctrl+j":
		m.input.newline()
	case "ctrl+c":
		m.interrupt()
	case "ctrl+d":
		switch {
		case m.input.empty():
			m.leave()
		case m.multi() && m.input.atEnd():
			m.enter()
		default:
			m.input.typed(msg)
		}
	case "ctrl+z":
		return act(m.suspend)
	case "ctrl+l":
		m.canvas.again()
	case "esc":
		m.escape(escaped)
	case "tab":
		m.input.complete(m.answers(), 1)
	case "shift+tab":
		m.slash("/" + ((m.state.Mode + 1) % (chat.Human + 1)).String())
	case "ctrl+t":
		m.slash("/t")
	case "ctrl+g":
		m.slash("/d")
	case "ctrl+o":
		return m.open()
	case "up", "ctrl+p":
		m.input.older()
	case "down", "ctrl+n":
		m.input.newer()
	default:
		m.input.typed(msg)
	}
	return nil
}

func act(f func()) tea.Cmd {
	if f == nil {
		return nil
	}
	return func() tea.Msg { f(); return nil }
}

// enter sends what was written.
func (m *model) enter() {
	text := m.input.value()
	if before, ok := strings.CutSuffix(m.input.area.Value(), `\`); ok && !m.multi() && m.input.area.Line() == m.input.area.LineCount()-1 && !m.secret() {
		m.input.area.SetValue(before + "\n")
		return
	}
	if m.asked == nil && strings.TrimSpace(text) == "" {
		return
	}
	if m.asked != nil && m.canvas.painted() < m.askedPage {
		return // a key that was meant for what was there before
	}
	if !m.secret() {
		m.input.history.add(text)
		if text != "" && m.remember != nil {
			m.remember(text)
		}
	}
	m.input.reset()
	m.send(text)
}

// keysHelp is what the keys of this front do; the core's help has the rest.
func keysHelp() []string {
	return []string{
		"  Enter            send               Alt-Enter, Ctrl-J  a new line",
		"  Up, Down         what was sent      Tab                complete",
		"  Shift-Tab        the next mode      Esc Esc            empty the input",
		"  Ctrl-G           the diff           Ctrl-T             thinking text",
		"  Ctrl-O           a long text whole  Ctrl-L             draw anew",
		"  Ctrl-C           interrupt          Ctrl-D             leave, at a question",
	}
}

// send answers the question; where there is none the core decides what a text
// means.
func (m *model) send(text string) {
	if t := strings.TrimSpace(text); t == "/h" || t == "/help" || t == "/?" {
		m.paragraph(keysHelp()...)
	}
	if m.asked != nil {
		m.answered(text)
		m.answer(answer{text: text})
		return
	}
	if !strings.HasPrefix(text, "/") {
		m.told = append(m.told, text)
	}
	m.controls.now().Input(text)
}

// slash is a key that stands for a slash command. What was being written stays.
func (m *model) slash(name string) {
	if m.asked == nil {
		m.controls.now().Input(name)
	} else if m.canvas.painted() >= m.askedPage {
		m.answer(answer{text: name})
	}
}

// answer ends the question.
func (m *model) answer(a answer) {
	m.asked.reply <- a // it has room for the one
	m.asked, m.askedPage = nil, 0
}

func (m *model) answers() []string {
	if m.asked == nil {
		return nil
	}
	return m.asked.Answers
}

// interrupt is Ctrl-C. What was being written can be had back.
func (m *model) interrupt() {
	if !m.secret() {
		m.input.history.add(m.input.value())
	}
	m.input.reset()
	if m.asked != nil {
		m.answer(answer{err: chat.ErrInterrupt})
		return
	}
	m.controls.now().Interrupt()
}

// leave is Ctrl-D where nothing is written.
func (m *model) leave() {
	if m.asked == nil {
		m.hint = "Ctrl-C interrupts the agent; Ctrl-D leaves at a question"
		return
	}
	m.answer(answer{err: chat.ErrLeft})
}

// escape closes the list. Twice it empties the input, which can be had back; once
// and Enter sends, which is what mini-swe-agent's users are used to.
func (m *model) escape(again bool) {
	switch {
	case m.input.matches() != nil:
		m.input.closed = true
	case !m.input.empty() && !again:
		m.escaped = true
		m.hint = "Enter sends, Esc once more empties the input"
	case !m.input.empty():
		if !m.secret() {
			m.input.history.add(m.input.value())
		}
		m.input.reset()
	}
}

// multi says that Enter begins a new line.
func (m *model) multi() bool {
	return m.asked != nil && m.asked.Multi && !m.secret() && !strings.HasPrefix(m.input.area.Value(), "/")
}

// open shows what was left out of the last long text.
func (m *model) open() tea.Cmd {
	switch {
	case m.whole == "":
		m.hint = "nothing was left out yet"
	case m.pager == nil:
		m.hint = "there is no pager here"
	default:
		return m.pager(m.whole)
	}
	return nil
}
