package term

import (
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/difflines"
	"github.com/minibench/mini/internal/markdown"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
)

// tailBuffer stores the end of a streaming text.
type tailBuffer struct {
	text    string
	dropped markdown.Scanner // has seen the text before
}

// maxTail is the length, in bytes, to which tailBuffer.add cuts a text that exceeds 1.5 times
// maxTail. A screen shows less.
const maxTail = 32 << 10

func (t *tailBuffer) add(s string) {
	t.text += s
	if excess := len(t.text) - maxTail; excess > maxTail/2 { // amortize the copying
		if i := strings.LastIndexByte(t.text[:excess], '\n'); i >= 0 {
			excess = i + 1 // so that the rest begins with a line
		}
		t.dropped.Skip(t.text[:excess])
		t.text = strings.ToValidUTF8(t.text[excess:], "")
	}
}

// liveTurn is the part of a turn that still changes: the streaming reply or the running command.
type liveTurn struct {
	reply, reasoning tailBuffer

	running bool
	output  *output
}

// rows returns the end of the live text, in at most limit rows.
func (t *liveTurn) rows(w, limit int, showReasoning bool) []string {
	if limit <= 0 {
		return nil
	}
	var rows []string
	switch {
	case t.running && t.output != nil:
		return t.output.liveRows(w, limit)
	case t.reply.text != "":
		chunk := lastChunk(t.reply.text, w*limit)
		r := replyRenderer{scanner: t.reply.dropped, width: w}
		if before := t.reply.text[:max(0, len(t.reply.text)-len(chunk))]; before != "" {
			r.scanner.Skip(before)
		}
		rows = r.render(chunk)
	case t.reasoning.text != "" && showReasoning:
		rows = styleRows(proseRows(sanitize.Text(lastChunk(t.reasoning.text, w*limit)), w), faint)
	}
	if len(rows) > limit {
		rows = rows[len(rows)-limit:]
	}
	return rows
}

// lastChunk returns the end of a text: enough to fill the given number of columns. The start
// of the chunk moves only now and then as the text grows, so that lines do not rewrap on each
// delta.
func lastChunk(s string, columns int) string {
	chunkSize := 4 * max(columns, 1) // UTF-8 takes up to four bytes
	begin := (len(s)/chunkSize - 1) * chunkSize
	if begin <= 0 {
		return s
	}
	s = s[begin:]
	if i := strings.IndexAny(s[:chunkSize/2], " \n"); i >= 0 {
		return s[i+1:]
	}
	return strings.ToValidUTF8(s, "")
}

// output shows the output of a command. It writes the beginning to the scrollback as it arrives,
// and the end when the command has ended.
type output struct {
	stream  *sanitize.Stream
	width   int
	write   func(row string)
	written int      // number of rows in the scrollback
	tail    []string // the newest rows not yet written, oldest first
	omitted int      // number of rows dropped between the beginning and tail
	dropped int      // number of events dropped before they arrived here
	diff    difflines.Scanner
	full    strings.Builder // the output from its beginning, up to maxFullOutput bytes
}

// maxFullOutput bounds the output that Ctrl-O shows, in bytes.
const maxFullOutput = 4 << 20

func newOutput(width int, write func(string)) *output {
	o := &output{width: width, write: write}
	o.stream = sanitize.NewStream(o.addLine)
	return o
}

func (o *output) addLine(line string) {
	style := unstyled
	if class := o.diff.Line(line, ""); class != "" && !strings.Contains(line, "\x1b") {
		style = steps.DiffStyle(class)
	}
	if room := maxFullOutput - o.full.Len(); room > 0 {
		o.full.WriteString(clip(line, room) + "\n")
	}
	for _, row := range outputRows(line, o.width) {
		row = style(row)
		if o.written < headRows {
			o.written++
			o.write(row)
			continue
		}
		o.tail = append(o.tail, row)
		if len(o.tail) >= 2*tailRows {
			o.omitted += len(o.tail) - tailRows
			o.tail = append(o.tail[:0], o.tail[len(o.tail)-tailRows:]...)
		}
	}
}

// outputRows splits a line into rows of w columns. It returns only the first rows of a very long
// line.
func outputRows(line string, w int) []string {
	rows := steps.HardWrap(line, w)
	if len(rows) > rowsPerLine {
		more := tty.Width(strings.Join(rows[rowsPerLine:], ""))
		rows = append(rows[:rowsPerLine], faint("… "+text.Count(more, "column")+" more in this line"))
	}
	return rows
}

// liveRows returns the end of the output, as far as it is not in the scrollback yet, in at most
// limit rows.
func (o *output) liveRows(w, limit int) []string {
	rows := o.tail
	if unfinished := o.stream.UnfinishedLine(); unfinished != "" {
		rows = append(rows[:len(rows):len(rows)], outputRows(unfinished, w)...)
	}
	excess := len(rows) - limit
	if excess <= 0 && o.omitted == 0 {
		return rows
	}
	if limit < 2 {
		return rows[max(0, excess):]
	}
	excess = max(0, excess+1) // one row for the note
	return append([]string{faint("⋮ " + text.Count(o.omitted+excess, "line"))}, rows[excess:]...)
}

// close writes the end of the output.
func (o *output) close() {
	_ = o.stream.Close() // never fails
	if excess := len(o.tail) - tailRows; excess > 0 {
		o.omitted += excess
		o.tail = o.tail[excess:]
	}
	if o.omitted > 0 {
		o.write(faint("… " + text.Count(o.omitted, "line") + " omitted: Ctrl-O shows the output …"))
	}
	if o.dropped > 0 {
		o.write(faint("… " + text.Count(o.dropped, "piece") + " not shown because the terminal is too slow …"))
	}
	for _, row := range o.tail {
		o.write(row)
	}
	o.tail = nil
}
