// Package transcript renders a session as lines: the user's texts, replies, commands, outputs and
// messages of mini, in the order in which they happen. Both frontends print these lines; package
// term also shows what is still arriving.
//
//	t := transcript.New(false, func(row string) { fmt.Println(row) })
//	t.Resize(80, 24)
//	t.Show(events.Content(e))
//
// A printed line never changes. Commands, code and outputs are printed in lines as long as they are:
// the terminal breaks them, so that a copied line is what the model wrote.
package transcript

import (
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// Transcript is the state of the rendering. It is not safe for concurrent use.
type Transcript struct {
	Width  int // columns of prose; 0 disables wrapping
	Height int // rows of the screen; 0 if unknown
	State  chat.State
	Now    func() time.Time

	plain     bool
	print     func(row string)
	lastBlank bool // the last row is blank, or there is none
	inNotices bool // the last rows are a notice
	fullText  string
	// stepOutput is the output of this step that was shortened.
	stepOutput string

	step      int
	reasoning reasoning
	reply     reply
	output    *output   // of the running command; nil if none runs
	outputs   []earlier // of earlier commands

	pendingCommands  []string // commands of the reply that are not shown yet
	shownCommand     string   // the last shown command, until it runs or is rejected
	rowsAfterCommand int
	submits          bool     // the running command only submits
	pendingMessages  []string // messages that the agent has not received yet
	lastInput        string   // the last text of the user that was shown
	limitReached     string   // name of the limit that ended the attempt
}

// New returns a Transcript that passes each finished row to print. Plain rows have no styles, and mini's
// own words are in ASCII characters. They leave out the user's texts, which the terminal has shown,
// and the outcome.
func New(plain bool, print func(row string)) *Transcript {
	t := &Transcript{plain: plain, print: print, lastBlank: true, Now: time.Now}
	t.startReply()
	return t
}

// Numbers of rows that are shown of a text.
const (
	maxCommand = 2000 // many, since users approve what they see
	maxDiff    = 500
	maxNote    = 200 // notices, and texts of the user
	maxMessage = 12  // other messages to the model
)

// separator separates two facts in a row.
const separator = " · "

// ascii replaces the characters of mini's own rows on simple terminals.
var ascii = strings.NewReplacer("── ", "--- ", " ──", " ---", " · ", ", ", "… ", "... ", "✓ ", "", "■ ", "", "❯", ">", "→", "->")

// clip shortens a text to about n bytes.
func clip(s string, n int) string { return text.Clip(s, n) }

// own returns a row of mini's own words.
func (t *Transcript) own(row string) string {
	if t.plain {
		return ascii.Replace(ansi.Strip(row))
	}
	return row
}

// styled applies a style, unless rows are plain.
func (t *Transcript) styled(style func(string) string) func(string) string {
	if t.plain {
		return steps.Unstyled
	}
	return style
}

func (t *Transcript) faint(s string) string { return t.own(t.styled(steps.Faint)(s)) }

// write prints rows.
func (t *Transcript) write(rows ...string) {
	for _, row := range rows {
		t.print(row)
		t.rowsAfterCommand++
		t.lastBlank, t.inNotices = row == "", false
	}
}

// paragraph prints rows after a blank row.
func (t *Transcript) paragraph(rows ...string) {
	if len(rows) == 0 {
		return
	}
	if !t.lastBlank {
		t.write("")
	}
	t.write(rows...)
}

// Print prints lines of a frontend after a blank row. They are sanitized.
func (t *Transcript) Print(lines ...string) {
	var rows []string
	for _, line := range lines {
		rows = append(rows, steps.Wrap(line, t.proseWidth())...)
	}
	t.paragraph(rows...)
}

// prose wraps and styles a text.
func (t *Transcript) prose(s string, style func(string) string) []string {
	return steps.Prose(sanitize.Text(s), t.Width, t.styled(style))
}

// line wraps and styles a row of mini's own words.
func (t *Transcript) line(row string) []string { return steps.Wrap(t.own(row), t.Width) }

// clip returns the first rows and, if there are more than limit, a note about the others. full is the
// whole text, and title its name.
func (t *Transcript) clip(rows []string, limit int, title, full string) []string {
	if len(rows) <= limit {
		return rows
	}
	return append(rows[:limit:limit], t.moreRow(len(rows)-limit, title, full))
}

func (t *Transcript) moreRow(n int, title, full string) string {
	t.fullText = full
	note := "… " + text.Count(n, "more line")
	if !t.plain {
		note += ": Ctrl-O shows the full " + title
	}
	return t.faint(note)
}

// FullText returns the last text that was shortened, complete; empty if there is none.
func (t *Transcript) FullText() string { return t.fullText }

// Resize sets the size of the screen.
func (t *Transcript) Resize(width, height int) {
	t.Width, t.Height, t.reply.Width = width, height, width
}

// Show renders an event (see events.Content), a chat.Notice, or a chat.Question, of which it shows
// the command.
func (t *Transcript) Show(item any) {
	switch e := item.(type) {
	case chat.Notice:
		t.showNotice(e)
	case chat.Question:
		t.showQuestion(e)
	case events.RunStarted:
		t.showRunStarted(e)
	case events.PhaseStarted:
		switch e.Phase {
		case events.PhaseThinking:
			t.showTurnStarted(e.Step)
		case events.PhaseRunning:
			t.showStarted(e)
		}
	case events.TextDelta:
		t.addDelta(e)
	case trajectories.Message:
		t.showMessage(e)
	case trajectories.CommandDecision:
		t.showDecision(e)
	case events.OutputChunk:
		if t.output != nil {
			t.output.add(e.Data)
		}
	case events.ChildProgress:
		t.write(t.faint("  " + sanitize.Line(clip(e.Text(), maxSubagentLine))))
	case trajectories.Execution:
		t.showEnded(e)
	case events.FilesChanged:
		t.showChanges(e)
	case events.LimitReached:
		t.showLimit(e)
	case trajectories.Compaction:
		t.paragraph(t.line(t.faint("… the conversation was compacted (" + sanitize.Line(clip(e.Policy, 100)) + "): " +
			"about " + unit.Count(e.TokensBefore) + " tokens to " + unit.Count(e.TokensAfter)))...)
		if e.Fallback != "" {
			t.write(t.prose("! extracts of the commands replace summaries: "+clip(e.Fallback, 300), steps.Colour(ansi.Yellow))...)
		}
	case trajectories.Outcome:
		t.showOutcome(e)
	case events.Dropped:
		t.showDropped(e)
	}
}

// maxSubagentLine bounds a line about a subagent, in bytes without the ellipsis.
const maxSubagentLine = 300

func (t *Transcript) showDropped(e events.Dropped) {
	switch {
	case t.output != nil:
		t.output.dropped += e.Count
	case t.reply.streamed.Len() > 0 || t.reasoning.any:
		t.reply.incomplete = true
	default:
		t.write(t.faint("… " + text.Count(e.Count, "event") + " not shown because the terminal is too slow"))
	}
}

func (t *Transcript) showNotice(n chat.Notice) {
	if n.IsDiff {
		var rows []string
		for _, l := range (steps.Renderer{Plain: t.plain}).Item(&timeline.Item{Kind: timeline.Patch, Text: n.Text}) {
			rows = append(rows, l.Text)
		}
		t.paragraph(t.clip(rows, maxDiff, "diff", n.Text)...)
		t.write("")
		return
	}
	var rows []string
	style := steps.Unstyled
	if n.IsError {
		style = t.styled(steps.Colour(ansi.Red))
	}
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(n.Text), "\n"), "\n") {
		for _, row := range steps.Wrap(line, t.proseWidth()) {
			rows = append(rows, style(row))
		}
	}
	rows = t.clip(rows, maxNote, "text", n.Text)
	if t.output != nil || t.inNotices {
		t.write(rows...)
	} else {
		t.paragraph(rows...)
	}
	t.inNotices = true
}

func (t *Transcript) proseWidth() int { return min(t.Width, steps.MaxProse) }

// maxRowsAfterCommand is how many rows may follow a command, fewer on a low screen. After more
// rows, a question about the command shows it again.
const maxRowsAfterCommand = 8

func (t *Transcript) showQuestion(q chat.Question) {
	if t.output == nil { // else the command has started a subagent, which asks
		t.Flush()
	}
	if q.Kind == chat.AskConfirm && q.Command != "" {
		limit := maxRowsAfterCommand
		if t.Height > 0 {
			limit = min(limit, t.Height/3)
		}
		if t.rowsAfterCommand > limit { // it may have scrolled off
			t.shownCommand = ""
		}
		t.showCommand(q.Command)
	}
}

// Answer shows the answer to a question, unless it is empty, or a later event shows it.
func (t *Transcript) Answer(q chat.Question, answer string) {
	switch {
	case strings.HasPrefix(answer, "/") && !q.Secret:
		t.showSlash(answer)
	case strings.TrimSpace(answer) == "", strings.HasPrefix(answer, "!"), q.Kind == chat.AskConfirm, q.Kind == chat.AskEdit, q.Kind == chat.AskCommand:
	case q.Secret:
		t.showUserText("••••")
	default:
		t.showUserText(answer)
	}
}

// Input shows a slash command that the user has entered while no question was open, and remembers
// other texts until the agent receives them.
func (t *Transcript) Input(typed string) {
	switch {
	case strings.HasPrefix(typed, "/"):
		t.showSlash(typed)
	case !strings.HasPrefix(typed, "!"):
		t.pendingMessages = append(t.pendingMessages, typed)
	}
}

// Pending returns the messages that the agent has not received yet.
func (t *Transcript) Pending() []string { return t.pendingMessages }

func (t *Transcript) showSlash(command string) {
	last := t.lastInput
	t.showUserText(command)
	t.lastInput = last // no event repeats it
}

// showUserText shows a text of the user.
func (t *Transcript) showUserText(typed string) {
	t.lastInput = typed
	if t.plain {
		return
	}
	var rows []string
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(typed), "\n"), "\n") {
		rows = append(rows, steps.Wrap(line, max(0, t.proseWidth()-2))...)
	}
	mark := t.own(steps.BoldColoured(ansi.Cyan, "❯")) + " "
	t.paragraph(t.clip(steps.Indent(mark, rows), maxNote, "text", typed)...)
}

func (t *Transcript) showRunStarted(e events.RunStarted) {
	if e.Task != "" && e.Step == 0 && strings.TrimSpace(e.Task) != strings.TrimSpace(t.lastInput) {
		t.showUserText(e.Task)
	}
	details := ""
	for _, text := range []string{e.Model, e.Environment, e.Dir} {
		if text != "" {
			details += separator + sanitize.Line(clip(text, 100))
		}
	}
	if details != "" {
		t.paragraph(t.line(t.faint(strings.TrimPrefix(details, separator)))...)
	}
}

func (t *Transcript) showTurnStarted(step int) {
	if step == 0 {
		return // after a wait, or for a summary
	}
	t.Flush()
	t.step, t.stepOutput = step, ""
	title := t.styled(steps.Bold)("step " + strconv.Itoa(step))
	if t.State.Cost > 0 {
		title += t.faint(separator + unit.Money(float64(t.State.Cost)))
	}
	t.paragraph(t.own(t.faint("── ")+title+t.faint(" ──")), "")
}

func (t *Transcript) showMessage(e trajectories.Message) {
	switch e.Cause {
	case trajectories.CauseReply:
		t.showReply(e)
	case trajectories.CauseFormatError:
		t.Flush()
		t.paragraph(t.styled(steps.Colour(ansi.Yellow))("! invalid reply; message to the model:"))
		t.write(t.clip(t.prose(e.Content, steps.Faint), maxMessage, "message", e.Content)...)
	default:
		t.showOtherMessage(e)
	}
}

func (t *Transcript) showOtherMessage(e trajectories.Message) {
	t.Flush()
	for i, typed := range t.pendingMessages {
		if strings.Contains(e.Content, strings.TrimSpace(typed)) {
			t.pendingMessages = append(t.pendingMessages[:i:i], t.pendingMessages[i+1:]...)
			t.showUserText(typed)
			t.lastInput = ""
			return
		}
	}
	hasLastInput := t.lastInput != "" && strings.Contains(e.Content, strings.TrimSpace(t.lastInput))
	if e.Cause == trajectories.CauseUserCommand || e.Cause == trajectories.CauseRejection || hasLastInput {
		return // already shown
	}
	rows := steps.Prose(sanitize.Text(e.Content), max(0, t.Width-2), t.styled(steps.Faint))
	t.paragraph(t.clip(steps.Indent(t.faint("→ "), rows), maxMessage, "message", e.Content)...)
}

// Flush shows what has arrived of a reply or an output that will not be completed.
func (t *Transcript) Flush() {
	t.closeOutput()
	if t.endReasoning(); t.reply.streamed.Len() > 0 {
		t.writeReply(t.reply.Close(nil))
		t.endReply()
		t.write(t.faint("… the reply is incomplete"))
	}
	t.startReply()
}

func (t *Transcript) showLimit(e events.LimitReached) {
	switch {
	case !e.Raised:
		t.limitReached = e.Limit // the outcome shows it
	case e.Limit == events.LimitCost && e.Cost > 0:
		t.paragraph(t.faint("the cost limit is now " + unit.Money(float64(e.Cost))))
	case e.Limit == events.LimitSteps && e.Steps > 0:
		t.paragraph(t.faint("the step limit is now " + strconv.Itoa(e.Steps)))
	default:
		t.paragraph(t.faint("the " + sanitize.Line(clip(e.Limit, 40)) + " limit is removed"))
	}
}

func (t *Transcript) showOutcome(o trajectories.Outcome) {
	t.Flush()
	for _, c := range t.pendingCommands {
		if !agent.IsBareSubmission(c) {
			t.showCommand(c)
			t.write(t.faint("not run"))
		}
	}
	t.pendingCommands, t.shownCommand, t.pendingMessages = nil, "", nil
	if t.plain {
		return
	}
	t.paragraph(t.line(t.outcomeRow(o))...)
	t.write("")
}

// outcomeRow describes the outcome of an attempt and the limit that ended it, if any. Its time is
// that of the status line.
func (t *Transcript) outcomeRow(o trajectories.Outcome) string {
	colour := ansi.Red
	switch o.Class {
	case trajectories.Submitted:
		colour = ansi.Green
	case trajectories.Limit, trajectories.Interrupted:
		colour = ansi.Yellow
	}
	row := steps.BoldColoured(colour, "■ "+sanitize.Line(clip(o.ExitStatus, 100)))
	row += steps.Faint(separator + text.Count(o.Steps, "step"))
	if o.Cost > 0 {
		row += steps.Faint(separator + unit.Money(float64(o.Cost)))
	}
	duration := o.ActiveDuration()
	if !t.State.Started.IsZero() {
		duration = t.Now().Sub(t.State.Started).Truncate(time.Second)
	}
	row += steps.Faint(separator + unit.Duration(duration))
	if t.limitReached != "" {
		row += steps.Faint(separator + sanitize.Line(clip(t.limitReached, 40)) + " limit reached")
	}
	if text := strings.TrimPrefix(o.Error, o.ExitStatus+": "); text != "" {
		row += steps.Faint(separator) + steps.Coloured(colour, sanitize.Line(clip(text, 500)))
	}
	return row
}

// Live returns the end of what is still arriving, in at most limit rows of the width.
func (t *Transcript) Live(limit int) []string {
	var rows []string
	switch {
	case limit <= 0 || t.submits:
	case t.output != nil:
		rows = t.output.live(limit)
	case t.reply.streamed.Len() > 0:
		rows = t.reply.Live(limit)
	case t.reasoning.any:
		rows = t.reasoning.live(t, limit)
	}
	return rows[max(0, len(rows)-max(0, limit)):]
}

// Continues reports whether the rows of Live continue the last row.
func (t *Transcript) Continues() bool {
	return t.output != nil || t.reply.written > 0 || t.reply.streamed.Len() == 0 && t.reasoning.written > 0
}

// LastBlank reports whether the last row is blank.
func (t *Transcript) LastBlank() bool { return t.lastBlank }
