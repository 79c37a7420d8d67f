package screen

import (
	"strings"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/safe"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// write puts rows above. What the screen says itself is wrapped here; what others
// say is already.
func (m *model) write(rows ...string) {
	for _, row := range rows {
		rows := wrapped(row, m.columns())
		m.above = append(m.above, rows...)
		m.after += len(rows)
		m.blank = row == ""
	}
}

// paragraph is write after a blank row.
func (m *model) paragraph(rows ...string) {
	if len(rows) == 0 {
		return
	}
	if !m.blank {
		m.write("")
	}
	m.write(rows...)
}

// some is the first of rows, and says so.
func (m *model) some(rows []string, most int, title, text string) []string {
	if len(rows) <= most {
		return rows
	}
	m.whole = text
	more := faint("… " + count(len(rows)-most, "line") + " more: Ctrl-O shows the whole " + title)
	return append(rows[:most:most], more)
}

// take shows one thing that came.
func (m *model) take(item any) {
	switch e := item.(type) {
	case *asked:
		m.ask(e)
	case withdrawn:
		if m.asked == e.question {
			m.asked, m.askedPage = nil, 0
		}
	case lost:
		m.lost(e)
	case chat.Note:
		m.note(e)
	case events.RunStarted:
		m.runStarted(e)
	case events.TurnStarted:
		m.turnStarted(e)
	case events.TextDelta:
		m.delta(e)
	case events.Replied:
		m.replied(e)
	case events.Decided:
		m.decided(e)
	case events.ActionStarted:
		m.actionStarted(e)
	case events.OutputChunk:
		if m.turn.out != nil {
			_, _ = m.turn.out.stream.Write(e.Data) // never fails
		}
	case events.ChildWorked:
		m.write(faint("  " + safe.Line(bounded(e.Text(), maxChild))))
	case events.ActionEnded:
		m.actionEnded(e)
	case events.FormatError:
		m.flush()
		rows := each(words(safe.Text(e.Text), m.columns()), faint)
		m.paragraph(coloured(yellow, "! the reply could not be acted on, which the model is told:"))
		m.write(m.some(rows, maxTold, "message", e.Text)...)
	case events.Told:
		m.toldModel(e)
	case events.LimitReached:
		m.limit(e)
	case events.Compacted:
		m.paragraph(faint("… the history was shortened (" + safe.Line(bounded(e.Policy, 100)) + "): " +
			"about " + grouped(e.TokensBefore) + " tokens are " + grouped(e.TokensAfter) + " now"))
	case events.Ended:
		m.ended(e)
	case events.Lost:
		m.lost(lost{items: e.Count})
	}
}

// maxChild bounds a line about what a child does, in bytes.
const maxChild = 300

func (m *model) lost(l lost) {
	if m.turn.out != nil && l.bytes > 0 {
		m.turn.out.more += l.bytes
		return
	}
	if m.turn.reply.text == "" && m.turn.thought.text == "" { // else the reply comes whole
		m.write(faint("… " + count(l.items, "event") + " not shown: they came too fast"))
	}
}

// maxAfter is how many rows may stand between a command and the question about it,
// without the command being shown again.
const maxAfter = 8

func (m *model) ask(q *asked) {
	running := m.turn.running // a command, a child of which asks: its output goes on
	m.flush()
	if running {
		m.turn.running, m.turn.out = true, newOutput(m.columns(), func(row string) { m.write(row) })
	}
	if q.Kind == chat.AskConfirm && q.Command != "" {
		if m.after > min(maxAfter, m.height/3) { // it may be out of sight
			m.shown = ""
		}
		m.command(q.Command)
	}
	m.asked, m.askedPage, m.urgent = q, 0, true
}

// answered shows what was answered, where nothing else will.
func (m *model) answered(text string) {
	q := m.asked
	switch {
	case strings.TrimSpace(text) == "" || strings.HasPrefix(text, "/") || q.Kind == chat.AskConfirm || q.Kind == chat.AskCommand:
		return
	case q.Secret:
		m.said("••••")
		return
	}
	m.said(text)
}

// said is a text of the person's.
func (m *model) said(text string) {
	m.echo = text
	var rows []string
	for line := range strings.SplitSeq(strings.TrimRight(safe.Text(text), "\n"), "\n") {
		rows = append(rows, words(line, m.columns()-2)...)
	}
	m.paragraph(m.some(indented(strong(cyan, "❯")+" ", rows), maxNote, "text", text)...)
}

func (m *model) note(n chat.Note) {
	if n.Diff {
		m.paragraph(m.some(diffRows(n.Text, m.columns()), maxDiff, "diff", n.Text)...)
		m.write("")
		return
	}
	rows := make([]string, 0, 1)
	for line := range strings.SplitSeq(strings.TrimRight(safe.Text(n.Text), "\n"), "\n") {
		rows = append(rows, words(line, m.columns())...)
	}
	if n.Bad {
		rows = each(rows, colour(red))
	}
	rows = m.some(rows, maxNote, "text", n.Text)
	if m.turn.out != nil {
		m.write(rows...) // among the output, which goes on
		return
	}
	m.paragraph(rows...)
}

func (m *model) runStarted(e events.RunStarted) {
	if e.Task != "" && strings.TrimSpace(e.Task) != strings.TrimSpace(m.echo) {
		m.said(e.Task)
	}
	where := ""
	for _, s := range []string{e.Model, e.Environment, e.Dir} {
		if s != "" {
			where += between + safe.Line(bounded(s, 100))
		}
	}
	if where != "" {
		m.paragraph(faint(strings.TrimPrefix(where, between)))
	}
}

func (m *model) turnStarted(e events.TurnStarted) {
	m.flush()
	title := bold("step " + grouped(int64(e.Step)))
	if m.state.Cost > 0 || m.state.Unpriced {
		title += faint(between + report.Spent(m.state.Cost, !m.state.Unpriced))
	}
	m.paragraph(titled(title, m.columns()))
	m.write("")
}

func (m *model) delta(e events.TextDelta) {
	if e.Restart {
		m.turn.reply, m.turn.thought = tail{}, tail{}
	}
	if e.Thinking {
		m.turn.thought.add(e.Text)
	} else {
		m.turn.reply.add(e.Text)
	}
}

func (m *model) replied(e events.Replied) {
	m.turn.reply, m.turn.thought = tail{}, tail{}
	w := m.columns()
	if e.Reasoning != "" && m.state.Thinking {
		rows := each(proseRows(safe.Text(e.Reasoning), w), faint)
		m.paragraph(m.some(rows, maxThought, "thinking", e.Reasoning)...)
	}
	m.paragraph(m.some(replyRows(e.Text, e.Commands, w), maxReply, "reply", e.Text)...)
	m.pending = e.Commands
}

// command shows one, unless it is what is above already.
func (m *model) command(text string) {
	for i, c := range m.pending {
		if c == text {
			m.pending = append(m.pending[:i:i], m.pending[i+1:]...)
			break
		}
	}
	if m.shown == text && text != "" {
		return
	}
	m.paragraph(m.some(commandRows(text, m.columns()), maxCommand, "command", text)...)
	m.shown, m.after = text, 0
}

func (m *model) decided(e events.Decided) {
	if e.Action == "allow" {
		return // it runs now
	}
	m.command(e.Command)
	m.shown = ""
	text := "not run"
	if e.By != "" {
		text += " (" + strings.TrimSpace(safe.Line(bounded(e.By+" "+e.Rule, 100))) + ")"
	}
	row := coloured(red, text)
	if e.Reason != "" {
		row += ": " + safe.Line(bounded(e.Reason, 1000))
	}
	m.write(row)
}

func (m *model) actionStarted(e events.ActionStarted) {
	m.flush()
	m.command(e.Command)
	m.shown = ""
	m.turn.running = true
	m.turn.out = newOutput(m.columns(), func(row string) { m.write(row) })
}

func (m *model) actionEnded(e events.ActionEnded) {
	m.closeOutput()
	m.write(endRow(e))
}

func (m *model) closeOutput() {
	if m.turn.out != nil {
		m.turn.out.close()
	}
	m.turn.out, m.turn.running = nil, false
}

// flush writes what is live and will not come whole any more.
func (m *model) flush() {
	m.closeOutput()
	if text := m.turn.reply.text; text != "" {
		rows := replyRows(text, nil, m.columns())
		rows = rows[max(0, len(rows)-maxReply):]
		m.paragraph(append(rows, faint("… the reply ends here"))...)
	}
	m.turn.reply, m.turn.thought = tail{}, tail{}
}

func (m *model) toldModel(e events.Told) {
	m.flush()
	for i, text := range m.told {
		if strings.Contains(e.Text, strings.TrimSpace(text)) {
			m.told = append(m.told[:i:i], m.told[i+1:]...)
			m.said(text)
			m.echo = ""
			return
		}
	}
	if e.Cause == trajectories.CauseCommand || e.Cause == trajectories.CauseRejection || m.echo != "" && strings.Contains(e.Text, strings.TrimSpace(m.echo)) {
		return // it is above
	}
	rows := each(words(safe.Text(e.Text), m.columns()-2), faint)
	m.paragraph(m.some(indented(faint("→ "), rows), maxTold, "message", e.Text)...)
}

func (m *model) limit(e events.LimitReached) {
	switch {
	case !e.Raised:
		m.limited = e.Which // the ending says it
	case e.Which == events.LimitCost && e.Cost > 0:
		m.paragraph(faint("the limit of cost is " + report.Spent(e.Cost, true) + " now"))
	case e.Which == events.LimitSteps && e.Steps > 0:
		m.paragraph(faint("the limit of steps is " + grouped(int64(e.Steps)) + " now"))
	default:
		m.paragraph(faint("there is no limit of " + safe.Line(bounded(e.Which, 40)) + " any more"))
	}
}

func (m *model) ended(e events.Ended) {
	m.flush()
	for _, c := range m.pending {
		m.command(c)
		m.write(faint("not run"))
	}
	m.pending, m.shown, m.told = nil, "", nil
	m.paragraph(outcomeRow(e.Outcome, m.limited))
	m.write("")
	m.ending.Store(true)
}
