package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
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
	input, x, y := m.input.view(m.hintText(), m.isSecret(), w)
	if m.height < 4 { // only the input fits
		return page{live: input[y : y+1], x: x}
	}
	question := m.questionRows(w)
	room := m.height - 1 - len(input) - 1 // one row for the rule
	menu := m.matchRows(w, room-2)
	question = question[:max(0, min(len(question), room-1-len(menu)))]
	room = min(room-len(question)-1-len(menu), m.height/2-1)
	pending := m.pendingRows(w)
	pending = pending[max(0, len(pending)-max(0, room)):]
	streaming := m.transcript.Live(min(maxLive, room-len(pending)-2))

	var rows []string
	if !m.transcript.LastBlank() && room > 0 && (len(streaming) == 0 || !m.transcript.Continues()) {
		rows = append(rows, "")
	}
	rows = append(rows, streaming...)
	for _, part := range [][]string{pending, nil} {
		if last := len(rows) - 1; last >= 0 && rows[last] != "" && room > len(rows)+len(part) {
			rows = append(rows, "")
		}
		rows = append(rows, part...)
	}
	rows = append(rows, steps.Faint(strings.Repeat("─", w)))
	rows = append(rows, question...)
	y += len(rows)
	rows = append(rows, input...)
	rows = append(rows, m.statusRow(w))
	for i, row := range rows {
		rows[i] = tty.Truncate(row, w)
	}
	return page{menu: menu, live: rows, x: x, y: y}
}

func (m *model) isSecret() bool { return m.question != nil && m.question.Secret }

// statusRow returns the last row: the result of the last key, or the status line.
func (m *model) statusRow(w int) string {
	if m.hint != "" {
		return steps.Coloured(ansi.Yellow, tty.Truncate(sanitize.Line(m.hint), w))
	}
	return statusLine(m.transcript.State, m.question != nil, m.activitySince, m.now, w)
}

// questionRows renders the open question and its reason.
func (m *model) questionRows(w int) []string {
	if m.question == nil {
		return nil
	}
	wrap := func(s string, style func(string) string) []string {
		return steps.Prose(sanitize.Line(text.Clip(s, 1000)), w, style)
	}
	rows := wrap(m.question.Text, steps.Bold)
	if m.question.Reason != "" {
		rows = append(rows, wrap(m.question.Reason, steps.Colour(ansi.Yellow))...)
	}
	return rows
}

// hintText returns the placeholder of an empty input.
func (m *model) hintText() string {
	q := m.question
	switch {
	case q == nil && m.transcript.State.Activity == "":
		return "/h for help"
	case q == nil:
		return "a message to the agent · /h for help · Ctrl-C interrupts"
	case q.Multiline:
		return "several lines; Ctrl-D ends them · /h for help"
	case q.Hint != "":
		return sanitize.Line(text.Clip(q.Hint, 300))
	case q.Kind == chat.AskConfirm:
		return "Enter runs it · any text rejects it, as the reason · /h for help"
	case len(q.Answers) > 0:
		return "Enter is " + sanitize.Line(text.Clip(strings.Join(q.Answers, ", or "), 300)) + " · Tab chooses"
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
			name = steps.BoldColoured(ansi.Cyan, name)
		}
		description := tty.Truncate(c.description, max(0, w-nameWidth-4))
		rows = append(rows, "  "+name+"  "+steps.Faint(description))
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
	messages := m.transcript.Pending()
	for _, message := range messages[max(0, len(messages)-maxPending):] {
		rows = append(rows, steps.Faint(tty.Truncate("↳ pending: "+sanitize.Line(text.Clip(message, 500)), w)))
	}
	return rows
}
