package term

import (
	"strconv"
	"strings"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/trajectories"
)

// writeRows wraps rows and adds them to the scrollback.
func (m *model) writeRows(rows ...string) {
	for _, row := range rows {
		wrapped := wrapStyled(row, m.columns())
		m.scrollback = append(m.scrollback, wrapped...)
		m.rowsAfterCommand += len(wrapped)
		m.lastRowBlank = row == ""
	}
}

// writeParagraph adds rows to the scrollback, after a blank row.
func (m *model) writeParagraph(rows ...string) {
	if len(rows) == 0 {
		return
	}
	if !m.lastRowBlank {
		m.writeRows("")
	}
	m.writeRows(rows...)
}

// clipRows returns the first rows and, if there are more than limit, a note. Ctrl-O then shows
// the full text; title names it in the note.
func (m *model) clipRows(rows []string, limit int, title, full string) []string {
	if len(rows) <= limit {
		return rows
	}
	m.fullText = full
	note := faint("… " + text.Count(len(rows)-limit, "line") + " more: Ctrl-O shows the full " + title)
	return append(rows[:limit:limit], note)
}

// showItem handles one item of the feed.
func (m *model) showItem(item any) {
	switch e := item.(type) {
	case *pendingQuestion:
		m.showQuestion(e)
	case questionWithdrawn:
		if m.question == e.question {
			m.question, m.questionPage = nil, 0
		}
	case chat.Notice:
		m.showNotice(e)
	case events.RunStarted:
		m.showRunStarted(e)
	case events.PhaseStarted:
		switch e.Phase {
		case events.PhaseThinking:
			m.showTurnStarted(e.Step)
		case events.PhaseRunning:
			m.showActionStarted(e.Command)
		}
	case events.TextDelta:
		m.addDelta(e)
	case trajectories.Message:
		m.showMessage(e)
	case trajectories.CommandDecision:
		m.showDecision(e)
	case events.OutputChunk:
		if m.turn.output != nil {
			_, _ = m.turn.output.stream.Write(e.Data) // never fails
		}
	case events.ChildProgress:
		m.writeRows(faint("  " + sanitize.Line(clip(e.Text(), maxSubagentLine))))
	case trajectories.Execution:
		m.closeOutput()
		m.writeRows(endRow(e))
	case events.FilesChanged:
		m.writeRows(faint("  changed: " + sanitize.Line(e.Text())))
		if m.fullText == m.stepOutput && m.stepOutput != "" { // a note says that Ctrl-O shows it
			m.fullText += "\n" + e.Patch
		} else {
			m.fullText = e.Patch
		}
	case events.LimitReached:
		m.showLimit(e)
	case trajectories.Compaction:
		m.writeParagraph(faint("… the conversation was compacted (" + sanitize.Line(clip(e.Policy, 100)) + "): " +
			"about " + unit.Count(e.TokensBefore) + " tokens to " + unit.Count(e.TokensAfter)))
		if e.Fallback != "" {
			m.writeRows(coloured(yellow, "! extracts of the commands replace summaries: "+sanitize.Line(clip(e.Fallback, 300))))
		}
	case trajectories.Outcome:
		m.showOutcome(e)
	case events.Dropped:
		m.showDropped(e)
	}
}

// maxSubagentLine bounds a line about a subagent, in bytes without the ellipsis.
const maxSubagentLine = 300

func (m *model) showDropped(e events.Dropped) {
	switch {
	case m.turn.output != nil:
		m.turn.output.dropped += e.Count
	case m.turn.reply.text == "" && m.turn.reasoning.text == "": // no note in a partial reply: the complete one follows
		m.writeRows(faint("… " + text.Count(e.Count, "event") + " not shown because the terminal is too slow"))
	}
}

// maxRowsAfterCommand is how many rows may follow a command, fewer on a low screen. After more
// rows, a question about the command shows it again.
const maxRowsAfterCommand = 8

func (m *model) showQuestion(q *pendingQuestion) {
	running := m.turn.running // if set, the command has started a subagent, which asks
	m.flushLive()
	if running {
		m.turn.running, m.turn.output = true, newOutput(m.columns(), func(row string) { m.writeRows(row) })
	}
	if q.Kind == chat.AskConfirm && q.Command != "" {
		if m.rowsAfterCommand > min(maxRowsAfterCommand, m.height/3) { // it may have scrolled off
			m.shownCommand = ""
		}
		m.showCommand(q.Command)
	}
	if q.Draft != "" {
		m.input.edit(q.Draft)
	}
	m.question, m.questionPage = q, 0
}

// showAnswer shows an answer, unless it is empty, is a command, or a later event shows it.
// It shows dots for a secret.
func (m *model) showAnswer(text string) {
	q := m.question
	switch {
	case strings.TrimSpace(text) == "", strings.HasPrefix(text, "/"), strings.HasPrefix(text, "!"), q.Kind == chat.AskConfirm, q.Kind == chat.AskEdit, q.Kind == chat.AskCommand:
		return
	case q.Secret:
		m.showUserText("••••")
		return
	}
	m.showUserText(text)
}

// showUserText shows a text of the user.
func (m *model) showUserText(text string) {
	m.lastInput = text
	var rows []string
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(text), "\n"), "\n") {
		rows = append(rows, wrapWords(line, m.columns()-2)...)
	}
	m.writeParagraph(m.clipRows(indentRows(boldColoured(cyan, "❯")+" ", rows), maxNote, "text", text)...)
}

func (m *model) showNotice(n chat.Notice) {
	if n.IsDiff {
		m.writeParagraph(m.clipRows(diffRows(n.Text, m.columns()), maxDiff, "diff", n.Text)...)
		m.writeRows("")
		return
	}
	rows := make([]string, 0, 1)
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(n.Text), "\n"), "\n") {
		rows = append(rows, wrapWords(line, m.columns())...)
	}
	if n.IsError {
		rows = styleRows(rows, colour(red))
	}
	rows = m.clipRows(rows, maxNote, "text", n.Text)
	if m.turn.output != nil {
		m.writeRows(rows...) // between the rows of the running command's output
		return
	}
	m.writeParagraph(rows...)
}

func (m *model) showRunStarted(e events.RunStarted) {
	if e.Task != "" && e.Step == 0 && strings.TrimSpace(e.Task) != strings.TrimSpace(m.lastInput) {
		m.showUserText(e.Task)
	}
	details := ""
	for _, text := range []string{e.Model, e.Environment, e.Dir} {
		if text != "" {
			details += separator + sanitize.Line(clip(text, 100))
		}
	}
	if details != "" {
		m.writeParagraph(faint(strings.TrimPrefix(details, separator)))
	}
}

func (m *model) showTurnStarted(step int) {
	m.flushLive()
	m.stepOutput = ""
	title := bold("step " + strconv.Itoa(step))
	if m.state.Cost > 0 {
		title += faint(separator + unit.Cost(float64(m.state.Cost), !m.state.Unpriced))
	}
	m.writeParagraph(titleRow(title, m.columns()))
	m.writeRows("")
}

func (m *model) addDelta(e events.TextDelta) {
	if e.Restart {
		m.turn.reply, m.turn.reasoning = tailBuffer{}, tailBuffer{}
	}
	if e.Thinking {
		m.turn.reasoning.add(e.Text)
	} else {
		m.turn.reply.add(e.Text)
	}
}

func (m *model) showMessage(e trajectories.Message) {
	switch e.Cause {
	case trajectories.CauseReply:
		m.showReply(e)
	case trajectories.CauseFormatError:
		m.flushLive()
		rows := styleRows(wrapWords(sanitize.Text(e.Content), m.columns()), faint)
		m.writeParagraph(coloured(yellow, "! invalid reply; message to the model:"))
		m.writeRows(m.clipRows(rows, maxMessage, "message", e.Content)...)
	default:
		m.showUserMessage(e)
	}
}

func (m *model) showReply(e trajectories.Message) {
	m.turn.reply, m.turn.reasoning = tailBuffer{}, tailBuffer{}
	w := m.columns()
	if e.Reasoning != "" && m.state.ShowThinking {
		rows := styleRows(proseRows(sanitize.Text(e.Reasoning), w), faint)
		m.writeParagraph(m.clipRows(rows, maxReasoning, "thinking", e.Reasoning)...)
	}
	m.writeParagraph(m.clipRows(replyRows(e.Content, e.Actions, w), maxReply, "reply", e.Content)...)
	m.pendingCommands = e.Actions
}

// showCommand shows a command, unless it is shownCommand already.
func (m *model) showCommand(text string) {
	for i, c := range m.pendingCommands {
		if c == text {
			m.pendingCommands = append(m.pendingCommands[:i:i], m.pendingCommands[i+1:]...)
			break
		}
	}
	if m.shownCommand == text && text != "" {
		return
	}
	m.writeParagraph(m.clipRows(commandRows(text, m.columns()), maxCommand, "command", text)...)
	m.shownCommand, m.rowsAfterCommand = text, 0
}

func (m *model) showDecision(e trajectories.CommandDecision) {
	if e.Action == trajectories.Allow {
		return // the command starts next
	}
	m.showCommand(e.Command)
	m.shownCommand = ""
	text := "not run"
	if e.By != "" {
		text += " (" + strings.TrimSpace(sanitize.Line(clip(e.By+" "+e.Rule, 100))) + ")"
	}
	row := coloured(red, text)
	if e.Reason != "" {
		row += ": " + sanitize.Line(clip(e.Reason, 1000))
	}
	m.writeRows(row)
}

func (m *model) showActionStarted(command string) {
	m.flushLive()
	m.showCommand(command)
	m.shownCommand = ""
	m.turn.running = true
	m.turn.output = newOutput(m.columns(), func(row string) { m.writeRows(row) })
}

func (m *model) closeOutput() {
	if m.turn.output != nil {
		m.turn.output.close()
		if m.turn.output.omitted > 0 {
			m.fullText = m.turn.output.full.String()
			m.stepOutput = m.fullText
		}
	}
	m.turn.output, m.turn.running = nil, false
}

// flushLive ends the output of a command and moves a reply that will not be completed to the
// scrollback.
func (m *model) flushLive() {
	m.closeOutput()
	if text := m.turn.reply.text; text != "" {
		rows := (&replyRenderer{scanner: m.turn.reply.dropped, width: m.columns()}).render(text)
		rows = rows[max(0, len(rows)-maxReply):]
		m.writeParagraph(append(rows, faint("… the reply is incomplete"))...)
	}
	m.turn.reply, m.turn.reasoning = tailBuffer{}, tailBuffer{}
}

func (m *model) showUserMessage(e trajectories.Message) {
	m.flushLive()
	for i, text := range m.pendingMessages {
		if strings.Contains(e.Content, strings.TrimSpace(text)) {
			m.pendingMessages = append(m.pendingMessages[:i:i], m.pendingMessages[i+1:]...)
			m.showUserText(text)
			m.lastInput = ""
			return
		}
	}
	hasLastInput := m.lastInput != "" && strings.Contains(e.Content, strings.TrimSpace(m.lastInput))
	if e.Cause == trajectories.CauseUserCommand || e.Cause == trajectories.CauseRejection || hasLastInput {
		return // already shown
	}
	rows := styleRows(wrapWords(sanitize.Text(e.Content), m.columns()-2), faint)
	m.writeParagraph(m.clipRows(indentRows(faint("→ "), rows), maxMessage, "message", e.Content)...)
}

func (m *model) showLimit(e events.LimitReached) {
	switch {
	case !e.Raised:
		m.limitReached = e.Limit // the outcome shows it
	case e.Limit == events.LimitCost && e.Cost > 0:
		m.writeParagraph(faint("the cost limit is now " + unit.Cost(float64(e.Cost), true)))
	case e.Limit == events.LimitSteps && e.Steps > 0:
		m.writeParagraph(faint("the step limit is now " + strconv.Itoa(e.Steps)))
	default:
		m.writeParagraph(faint("the " + sanitize.Line(clip(e.Limit, 40)) + " limit is removed"))
	}
}

func (m *model) showOutcome(o trajectories.Outcome) {
	m.flushLive()
	for _, c := range m.pendingCommands {
		m.showCommand(c)
		m.writeRows(faint("not run"))
	}
	m.pendingCommands, m.shownCommand, m.pendingMessages = nil, "", nil
	m.writeParagraph(outcomeRow(o, m.limitReached))
	m.writeRows("")
	m.outcomeShown.Store(true)
}
