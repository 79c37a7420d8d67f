package term

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

// handleKey handles a key.
func (m *model) handleKey(msg tea.KeyPressMsg) tea.Cmd {
	escWasPressed := m.escPressed
	m.escPressed = false
	switch msg.String() {
	case "enter":
		if m.isMultiline() && !escWasPressed {
			m.input.newline()
			break
		}
		m.handleEnter()
	case "alt+enter", "shift+enter", "ctrl+j":
		m.input.newline()
	case "ctrl+c":
		m.interrupt()
	case "ctrl+d":
		switch {
		case m.input.isEmpty():
			m.quit()
		case m.isMultiline() && m.input.isAtEnd():
			m.handleEnter()
		default:
			m.input.handleKey(msg)
		}
	case "ctrl+z":
		return callCmd(m.suspend)
	case "ctrl+l":
		m.repaint = true
	case "esc":
		m.handleEsc(escWasPressed)
	case "tab":
		m.input.complete(m.answerChoices(), 1)
	case "shift+tab":
		mode := "/" + ((m.transcript.State.Mode + 1) % (chat.Human + 1)).String()
		if m.question != nil && m.question.Kind == chat.AskConfirm { // the key must not run or reject the command
			m.handler.get().Input(mode)
			break
		}
		m.sendSlash(mode)
	case "ctrl+t":
		m.transcript.Input("/t")
		m.sendSlash("/t")
	case "ctrl+g":
		m.transcript.Input("/d")
		m.sendSlash("/d")
	case "ctrl+o":
		return m.openPager()
	case "up", "ctrl+p":
		m.input.older()
	case "down", "ctrl+n":
		m.input.newer()
	default:
		m.input.handleKey(msg)
	}
	return nil
}

func callCmd(f func()) tea.Cmd {
	if f == nil {
		return nil
	}
	return func() tea.Msg { f(); return nil }
}

// handleEnter submits the input. After a backslash it adds a line instead.
func (m *model) handleEnter() {
	text := m.input.value()
	inLastLine := m.input.area.Line() == m.input.area.LineCount()-1
	before, ok := strings.CutSuffix(m.input.area.Value(), `\`)
	if ok && inLastLine && !m.isMultiline() && !m.isSecret() {
		m.input.area.SetValue(before + "\n")
		return
	}
	if m.question == nil && strings.TrimSpace(text) == "" {
		return
	}
	if m.question != nil && !m.questionVisible() {
		return // the question was not visible yet when the key was pressed
	}
	if m.setAside != "" && text == "" && !m.enterPressed { // it may have been meant for the text
		m.enterPressed = true
		m.hint = "Enter again answers the question; your text comes back after it"
		return
	}
	if !m.isSecret() {
		m.input.history.add(text)
		if text != "" && m.saveInput != nil {
			m.saveInput(text)
		}
	}
	m.input.reset()
	m.submit(text)
}

// keysHelp explains the keys of this frontend. The session's help explains the slash commands.
func keysHelp() []string {
	return []string{
		"  Enter            send               Alt-Enter, Ctrl-J  new line",
		"  Up, Down         input history      Tab, Up, Down      complete / and @",
		"  Shift-Tab        next mode          Esc Esc            clear the input",
		"  Ctrl-G           diff               Ctrl-T             show reasoning",
		"  Ctrl-O           full text, diff    Ctrl-L             redraw",
		"  Ctrl-C           interrupt          Ctrl-D             quit, at a question",
	}
}

// submit answers the open question, or passes the text to the input handler.
func (m *model) submit(text string) {
	if m.question == nil {
		m.transcript.Input(text)
	} else {
		m.transcript.Answer(m.question.Question, text)
	}
	if t := strings.TrimSpace(text); t == "/h" || t == "/help" || t == "/?" {
		m.transcript.Show(chat.Notice{Text: strings.Join(keysHelp(), "\n")})
	}
	if m.question != nil {
		m.answer(answer{text: text})
		return
	}
	m.handler.get().Input(text)
}

// sendSlash executes a slash command that is bound to a key. The input field is unchanged.
func (m *model) sendSlash(command string) {
	if m.question == nil {
		m.handler.get().Input(command)
	} else if m.questionVisible() {
		m.answer(answer{text: command})
	}
}

// answer answers the open question.
func (m *model) answer(a answer) {
	m.question.reply <- a // has capacity 1
	m.closeQuestion()
}

// closeQuestion brings back the input of before the question.
func (m *model) closeQuestion() {
	m.question, m.questionPage = nil, 0
	if m.setAside != "" && m.input.isEmpty() {
		m.input.set(m.setAside)
	}
	m.setAside, m.enterPressed = "", false
}

func (m *model) answerChoices() []string {
	if m.question == nil {
		return nil
	}
	return m.question.Answers
}

// interrupt handles Ctrl-C: at a question it clears the input or, if there is none, answers with
// ErrInterrupted; else it interrupts the agent.
func (m *model) interrupt() {
	hadInput := !m.input.isEmpty()
	m.clearInput()
	switch {
	case m.question == nil:
		m.handler.get().Interrupt()
	case !hadInput:
		m.answer(answer{err: chat.ErrInterrupted})
	}
}

// clearInput moves the input to the history, but discards a secret.
func (m *model) clearInput() {
	if !m.isSecret() {
		m.input.history.add(m.input.value())
	}
	m.input.reset()
}

// quit handles Ctrl-D with an empty input.
func (m *model) quit() {
	if m.question == nil {
		m.hint = "Ctrl-C interrupts the agent; Ctrl-D quits at a question"
		return
	}
	m.answer(answer{err: chat.ErrQuit})
}

// handleEsc closes the list of matches. If there is none, the second Esc in a row moves the
// input to the history. Esc and then Enter submits the input, as in mini-swe-agent.
func (m *model) handleEsc(escWasPressed bool) {
	switch {
	case m.input.matches() != nil:
		m.input.matchesHidden = true
	case m.input.isEmpty() && m.question == nil && m.transcript.State.Activity != "":
		m.hint = "Ctrl-C interrupts the agent"
	case !m.input.isEmpty() && !escWasPressed:
		m.escPressed = true
		m.hint = "Enter sends, Esc again clears the input"
	case !m.input.isEmpty():
		m.clearInput()
	}
}

// isMultiline reports whether Enter adds a line instead of submitting the input.
func (m *model) isMultiline() bool {
	return m.question != nil && m.question.Multiline && !m.isSecret() && !strings.HasPrefix(m.input.area.Value(), "/")
}

// openPager shows the last shortened text, complete, in the user's pager.
func (m *model) openPager() tea.Cmd {
	switch text := m.transcript.FullText(); {
	case text == "":
		m.hint = "nothing was shortened yet"
	case m.pager == nil:
		m.hint = "no pager available"
	default:
		return m.pager(text)
	}
	return nil
}
