package transcript

import (
	"strings"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/trajectories"
)

// reply is the reply that arrives.
type reply struct {
	steps.Reply
	streamed   strings.Builder // what has arrived
	written    int             // rows printed
	omitted    int             // rows not printed
	incomplete bool            // a part of the pieces was dropped
}

const (
	maxReply     = 400 // rows of a reply
	maxReasoning = 24  // rows of reasoning
)

// startReply forgets the reply before.
func (t *Transcript) startReply() {
	t.reply = reply{Reply: steps.Reply{Width: t.Width, Plain: t.plain}}
	t.reasoning = reasoning{}
}

// addDelta shows a piece of a reply. Reasoning ends with the first piece of the text.
func (t *Transcript) addDelta(e events.TextDelta) {
	if e.Restart {
		if t.reply.written > 0 || t.reasoning.written > 0 {
			t.write(t.faint("… the request is repeated; the text above is discarded"))
		}
		t.startReply()
	}
	switch {
	case e.Text == "" || t.reply.incomplete:
	case e.Thinking && t.State.ShowThinking:
		t.reasoning.add(t, e.Text)
	case !e.Thinking:
		t.endReasoning()
		t.reply.streamed.WriteString(e.Text)
		t.writeReply(t.reply.Write(e.Text))
	}
}

// writeReply prints finished rows of the reply.
func (t *Transcript) writeReply(rows []string) {
	for _, row := range rows {
		switch {
		case t.reply.written >= maxReply:
			t.reply.omitted++
		case t.reply.written == 0:
			t.paragraph(row)
			t.reply.written++
		default:
			t.write(row)
			t.reply.written++
		}
	}
}

// endReply says how many rows of the reply were left out.
func (t *Transcript) endReply() {
	if t.reply.omitted > 0 {
		t.write(t.moreRow(t.reply.omitted, "reply", t.reply.streamed.String()))
	}
}

// showReply shows what is left of a complete reply.
func (t *Transcript) showReply(e trajectories.Message) {
	if t.reply.incomplete {
		t.write(t.faint("… not all of it was shown because the terminal is too slow; the whole reply:"))
		t.startReply()
	}
	if !t.reasoning.any && t.State.ShowThinking && t.reply.streamed.Len() == 0 && e.Reasoning != "" {
		t.reasoning.add(t, e.Reasoning)
	}
	t.endReasoning()
	rest, hasRest := strings.CutPrefix(e.Content, t.reply.streamed.String())
	if hasRest {
		t.reply.streamed.WriteString(rest)
		t.writeReply(t.reply.Write(rest))
	}
	t.writeReply(t.reply.Close(e.Actions))
	t.endReply()
	t.startReply()
	t.pendingCommands = append([]string{}, e.Actions...)
}

// reasoning is the reasoning that arrives. Its first rows are printed as they are finished.
type reasoning struct {
	any     bool
	pending string // the unfinished line
	full    strings.Builder
	written int
	omitted int
	tail    []string // the last rows that are not printed
	blank   bool     // a blank line follows
	ended   bool
}

// maxTail is the number of rows, not printed, that are shown while a text arrives.
const maxTail = 16

func (r *reasoning) add(t *Transcript, text string) {
	r.any = true
	r.full.WriteString(text)
	r.pending += text
	for {
		line, rest, found := strings.Cut(r.pending, "\n")
		if !found && len(r.pending) < 64<<10 {
			return
		}
		r.pending = rest
		r.writeRows(t, t.prose(line, steps.Faint))
	}
}

func (r *reasoning) writeRows(t *Transcript, rows []string) {
	if r.blank = r.blank || len(rows) == 0; r.blank && len(rows) > 0 && r.written > 0 {
		rows, r.blank = append([]string{""}, rows...), false
	}
	for _, row := range rows {
		switch {
		case r.written >= maxReasoning:
			r.omitted++
			r.tail = append(r.tail[max(0, len(r.tail)-maxTail):], row)
		case r.written == 0:
			t.paragraph(row)
			r.written++
		default:
			t.write(row)
			r.written++
		}
	}
}

// live returns the rows that are not printed.
func (r *reasoning) live(t *Transcript, limit int) []string {
	pending := r.pending[max(0, len(r.pending)-4<<10):]
	rows := append(r.tail[:len(r.tail):len(r.tail)], t.prose(strings.ToValidUTF8(pending, ""), steps.Faint)...)
	return rows[max(0, len(rows)-limit):]
}

// endReasoning prints the rest of the reasoning.
func (t *Transcript) endReasoning() {
	r := &t.reasoning
	if !r.any || r.ended {
		return
	}
	if r.ended = true; sanitize.Line(r.pending) != "" {
		r.writeRows(t, t.prose(r.pending, steps.Faint))
	}
	if r.pending = ""; r.omitted > 0 {
		t.write(t.moreRow(r.omitted, "reasoning", r.full.String()))
	}
	r.tail = nil
}

// Unfinished returns the rows of the unfinished line of a reply or of reasoning, with the blank row
// before them. Plain rows only grow until the line is finished.
func (t *Transcript) Unfinished() []string {
	r, blank := &t.reasoning, !t.lastBlank
	var rows []string
	switch {
	case t.output != nil || t.reply.incomplete:
	case t.reply.streamed.Len() > 0:
		rows, blank = t.reply.Unfinished(), blank && t.reply.written == 0
	case r.any && !r.ended && r.written < maxReasoning:
		rows, blank = t.prose(r.pending, steps.Faint), blank && r.written == 0 || r.blank && r.written > 0
		if len(rows) > 0 && strings.HasSuffix(r.pending, " ") {
			rows[len(rows)-1] += " "
		}
	}
	if blank && len(rows) > 0 {
		rows = append([]string{""}, rows...)
	}
	return rows
}
