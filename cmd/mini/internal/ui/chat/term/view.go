package term

import (
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
)

const (
	maxLive    = 16 // rows of a streaming reply or output
	maxMatches = 14 // number of completions shown
	maxPending = 3  // number of pending messages shown, the newest ones
)

// livePage returns the live lines: streaming text, pending messages, the question, the input
// and the status line. Streaming text and pending messages take less than half of the screen.
func (m *model) livePage() page {
	w := m.columns()
	if m.height < 4 { // only the input fits
		rows, x, y := m.input.view(m.hintText(), m.isSecret(), w)
		return page{live: rows[y : y+1], x: x}
	}
	input, x, y := m.input.view(m.hintText(), m.isSecret(), w)
	question := m.questionRows(w)
	room := m.height - 1 - len(input) - 1 // one row for the rule
	footer := append(m.matchRows(w, room-len(question)-1), m.statusRow(w))
	if excess := len(question) + len(footer) - room; excess > 0 {
		footer = footer[min(excess, len(footer)-1):]
		question = question[:max(0, min(len(question), room-len(footer)))]
	}
	room = min(room-len(question)-len(footer), m.height/2-1)
	pending := m.pendingRows(w)
	pending = pending[max(0, len(pending)-max(0, room)):]
	streaming := m.turn.rows(w, min(maxLive, room-len(pending)-2), m.state.ShowThinking)

	var rows []string
	if !m.lastRowBlank && room > 0 && (!m.turn.running || len(streaming) == 0) {
		rows = append(rows, "")
	}
	if rows = append(rows, streaming...); len(streaming) > 0 && len(pending) > 0 && room > len(rows)+len(pending)+1 {
		rows = append(rows, "")
	}
	rows = append(rows, pending...)
	if len(streaming)+len(pending) > 0 && room > len(rows) {
		rows = append(rows, "")
	}
	rows = append(rows, ruleRow(w))
	rows = append(rows, question...)
	y += len(rows)
	rows = append(rows, input...)
	rows = append(rows, footer...)
	for i, row := range rows {
		rows[i] = tty.Truncate(row, w)
	}
	return page{live: rows, x: x, y: y}
}

func (m *model) isSecret() bool { return m.question != nil && m.question.Secret }

// statusRow returns the last row: the result of the last key, or the status line.
func (m *model) statusRow(w int) string {
	if m.hint != "" {
		return coloured(yellow, tty.Truncate(sanitize.Line(m.hint), w))
	}
	return statusLine(m.state, m.question != nil, m.activitySince, m.now, w)
}

// questionRows renders the open question and its reason.
func (m *model) questionRows(w int) []string {
	if m.question == nil {
		return nil
	}
	q := m.question
	rows := styleRows(wrapWords(sanitize.Line(clip(q.Text, 1000)), w), bold)
	if q.Reason != "" {
		rows = append(rows, styleRows(wrapWords(sanitize.Line(clip(q.Reason, 1000)), w), colour(yellow))...)
	}
	return rows
}

// hintText returns the placeholder of an empty input.
func (m *model) hintText() string {
	q := m.question
	switch {
	case q == nil && m.state.Activity == "":
		return "/h for help"
	case q == nil:
		return "a message to the agent · /h for help · Ctrl-C interrupts"
	case q.Multiline:
		return "several lines; Ctrl-D ends them · /h for help"
	case q.Hint != "":
		return sanitize.Line(clip(q.Hint, 300))
	case q.Kind == chat.AskConfirm:
		return "Enter runs it · any text rejects it, as the reason · /h for help"
	case len(q.Answers) > 0:
		return "Enter is " + sanitize.Line(clip(strings.Join(q.Answers, ", or "), 300)) + " · Tab chooses"
	case q.Kind == chat.AskTask:
		return "Alt-Enter adds a line · /h for help"
	}
	return ""
}

// matchRows renders the completions of the input, in at most limit rows.
func (m *model) matchRows(w, limit int) []string {
	matches := m.input.matches()
	limit = min(limit, maxMatches)
	if len(matches) == 0 || limit <= 0 {
		return nil
	}
	nameWidth := 0
	for _, c := range matches {
		nameWidth = max(nameWidth, tty.Width(c.label))
	}
	first := 0
	selected := m.input.selected
	if selected >= 0 && len(matches) > 0 {
		selected %= len(matches)
		first = max(0, selected-limit+1)
	}
	var rows []string
	for i, c := range matches[first:min(len(matches), first+limit)] {
		name := tty.PadRight(c.label, nameWidth)
		if first+i == selected {
			name = boldColoured(cyan, name)
		}
		description := tty.Truncate(c.description, max(0, w-nameWidth-4))
		rows = append(rows, "  "+name+"  "+faint(description))
		if tty.Width(name) > w-2 {
			rows[len(rows)-1] = tty.Truncate(c.label, w)
		}
	}
	return rows
}

func slashNames(c chat.SlashCommand) string {
	if c.LongName == "" {
		return c.Name
	}
	return tty.PadRight(c.Name, 3) + " " + c.LongName
}

// pendingRows renders the newest messages that the agent has not received yet.
func (m *model) pendingRows(w int) []string {
	var rows []string
	for _, text := range m.pendingMessages[max(0, len(m.pendingMessages)-maxPending):] {
		rows = append(rows, faint(tty.Truncate("↳ pending: "+sanitize.Line(clip(text, 500)), w)))
	}
	return rows
}
