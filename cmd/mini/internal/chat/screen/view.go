package screen

import (
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/safe"
	tty "github.com/minibench/mini/cmd/mini/internal/screen"
)

const (
	maxLive    = 16 // rows of a reply or an output that is coming
	maxMatches = 8  // slash commands at a time
	maxTolds   = 3  // texts that wait to be told
)

// live is the bottom of the screen: what is coming, what was said and not told
// yet, the question, the input, and where things stand. It takes about half of
// the screen.
func (m *model) live() page {
	w := m.columns()
	if m.height < 4 { // there is room for the input alone
		rows, x, y := m.input.view(m.hintText(), m.secret(), w)
		return page{live: rows[y : y+1], x: x}
	}
	input, x, y := m.input.view(m.hintText(), m.secret(), w)
	head := m.questionRows(w)
	room := m.height - 1 - len(input) - 1 // for the rule
	foot := append(m.matchRows(w, room-len(head)-1), m.statusRow(w))
	if over := len(head) + len(foot) - room; over > 0 {
		foot = foot[min(over, len(foot)-1):]
		head = head[:max(0, min(len(head), room-len(foot)))]
	}
	room = min(room-len(head)-len(foot), m.height/2-1)
	told := m.toldRows(w)
	told = told[max(0, len(told)-max(0, room)):]
	coming := m.turn.rows(w, min(maxLive, room-len(told)-2), m.state.Thinking)

	var rows []string
	if !m.blank && room > 0 && (!m.turn.running || len(coming) == 0) {
		rows = append(rows, "")
	}
	if rows = append(rows, coming...); len(coming) > 0 && len(told) > 0 && room > len(rows)+len(told)+1 {
		rows = append(rows, "")
	}
	rows = append(rows, told...)
	if len(coming)+len(told) > 0 && room > len(rows) {
		rows = append(rows, "")
	}
	rows = append(rows, rule(w))
	rows = append(rows, head...)
	y += len(rows)
	rows = append(rows, input...)
	rows = append(rows, foot...)
	for i, row := range rows {
		rows[i] = tty.Cut(row, w)
	}
	return page{live: rows, x: x, y: y}
}

func (m *model) secret() bool { return m.asked != nil && m.asked.Secret }

// statusRow is the last one; an answer to a key takes its place until the next.
func (m *model) statusRow(w int) string {
	if m.hint != "" {
		return coloured(yellow, tty.Cut(safe.Line(m.hint), w))
	}
	return statusLine(m.state, m.asked != nil, m.busySince, m.now, w)
}

// questionRows is the question that is open, and why it is asked.
func (m *model) questionRows(w int) []string {
	if m.asked == nil {
		return nil
	}
	q := m.asked
	rows := each(words(safe.Line(bounded(q.Text, 1000)), w), bold)
	if q.Reason != "" {
		rows = append(rows, each(words(safe.Line(bounded(q.Reason, 1000)), w), colour(yellow))...)
	}
	return rows
}

// hintText says what may be written, where nothing is.
func (m *model) hintText() string {
	q := m.asked
	switch {
	case q == nil && m.state.Busy == "":
		return "/h for help"
	case q == nil:
		return "a message to the agent · /h for help · Ctrl-C interrupts"
	case q.Multi:
		return "several lines: Alt-Enter or Ctrl-D sends them · /h for help"
	case q.Hint != "":
		return safe.Line(bounded(q.Hint, 300))
	case q.Kind == chat.AskConfirm:
		return "Enter runs it · a text says no, and why · /h for help"
	case len(q.Answers) > 0:
		return "Enter is " + safe.Line(bounded(strings.Join(q.Answers, ", or "), 300)) + " · Tab chooses"
	case q.Kind == chat.AskTask:
		return "Alt-Enter begins a new line · /h for help"
	}
	return ""
}

// matchRows are the slash commands that begin like the input, at most most.
func (m *model) matchRows(w, most int) []string {
	matches := m.input.matches()
	most = min(most, maxMatches)
	if len(matches) == 0 || most <= 0 {
		return nil
	}
	names := 0
	for _, c := range matches {
		names = max(names, tty.Width(slashName(c)))
	}
	from := 0
	picked := m.input.picked
	if picked >= 0 && len(matches) > 0 {
		picked %= len(matches)
		from = max(0, picked-most+1)
	}
	var rows []string
	for i, c := range matches[from:min(len(matches), from+most)] {
		name := tty.Fit(slashName(c), names)
		if from+i == picked {
			name = strong(cyan, name)
		}
		about := tty.Cut(c.About, max(0, w-names-4))
		rows = append(rows, "  "+name+"  "+faint(about))
		if tty.Width(name) > w-2 {
			rows[len(rows)-1] = tty.Cut(slashName(c), w)
		}
	}
	return rows
}

func slashName(c chat.Slash) string {
	if c.Long == "" {
		return c.Name
	}
	return tty.Fit(c.Name, 3) + " " + c.Long
}

// toldRows are texts of the person's that the agent does not know yet.
func (m *model) toldRows(w int) []string {
	var rows []string
	for _, text := range m.told[max(0, len(m.told)-maxTolds):] {
		rows = append(rows, faint(tty.Cut("↳ to be told: "+safe.Line(bounded(text, 500)), w)))
	}
	return rows
}
