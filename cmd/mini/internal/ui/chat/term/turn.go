package term

import (
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
)

// tailBuffer keeps the end of a streaming text.
type tailBuffer struct {
	text      string
	truncated bool // the beginning was dropped
}

// maxTail is how much of a streaming text is kept, in bytes: more than a screen.
const maxTail = 32 << 10

func (t *tailBuffer) add(s string) {
	t.text += s
	if over := len(t.text) - maxTail; over > maxTail/2 { // amortize the copying
		t.text, t.truncated = strings.ToValidUTF8(t.text[over:], ""), true
	}
}

// liveTurn is the live part of a turn: the streaming reply and the running command.
type liveTurn struct {
	reply, thought tailBuffer

	running bool
	output  *output
}

// rows returns the end of the live text, in at most limit rows.
func (t *liveTurn) rows(w, limit int, thinking bool) []string {
	if limit <= 0 {
		return nil
	}
	var rows []string
	switch {
	case t.running && t.output != nil:
		return t.output.liveRows(w, limit)
	case t.reply.text != "":
		rows = proseRows(sanitize.Text(lastChunk(t.reply.text, w*limit)), w)
	case t.thought.text != "" && thinking:
		rows = styleRows(proseRows(sanitize.Text(lastChunk(t.thought.text, w*limit)), w), faint)
	}
	if len(rows) > limit {
		rows = rows[len(rows)-limit:]
	}
	return rows
}

// lastChunk returns at least the given number of columns from the end of a text. It begins at
// a fixed position for a while as the text grows, so that lines do not rewrap on each delta.
func lastChunk(s string, columns int) string {
	n := 4 * max(columns, 1) // UTF-8 takes up to four bytes
	begin := (len(s)/n - 1) * n
	if begin <= 0 {
		return s
	}
	s = s[begin:]
	if i := strings.IndexAny(s[:n/2], " \n"); i >= 0 {
		return s[i+1:]
	}
	return strings.ToValidUTF8(s, "")
}

// output shows the output of a command: the beginning goes to the scrollback as it arrives,
// the end is kept and written when the command has ended.
type output struct {
	stream  *sanitize.Stream
	width   int
	write   func(row string)
	written int      // number of rows in the scrollback
	tail    []string // the newest rows not yet written, oldest first
	omitted int      // number of rows dropped in between
	dropped int      // number of chunks lost in transit
}

func newOutput(width int, emit func(string)) *output {
	o := &output{width: width, write: emit}
	o.stream = sanitize.NewStream(o.addLine)
	return o
}

func (o *output) addLine(line string) {
	for _, row := range outputRows(line, o.width) {
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

// outputRows returns the beginning of a line in rows of w columns.
func outputRows(line string, w int) []string {
	rows := steps.HardWrap(line, w)
	if len(rows) > rowsPerLine {
		more := tty.Width(strings.Join(rows[rowsPerLine:], ""))
		rows = append(rows[:rowsPerLine], faint("… "+count(more, "column")+" more in this line"))
	}
	return rows
}

// liveRows returns the end of the output that is not in the scrollback, in at most limit rows.
func (o *output) liveRows(w, limit int) []string {
	rows := o.tail
	if rest := o.stream.UnfinishedLine(); rest != "" {
		rows = append(rows[:len(rows):len(rows)], outputRows(rest, w)...)
	}
	over := len(rows) - limit
	if over <= 0 && o.omitted == 0 {
		return rows
	}
	if limit < 2 {
		return rows[max(0, over):]
	}
	over = max(0, over+1) // one row for the note
	return append([]string{faint("⋮ " + count(o.omitted+over, "line"))}, rows[over:]...)
}

// close writes the kept end.
func (o *output) close() {
	_ = o.stream.Close() // never fails
	if over := len(o.tail) - tailRows; over > 0 {
		o.omitted += over
		o.tail = o.tail[over:]
	}
	if o.omitted > 0 {
		o.write(faint("… " + count(o.omitted, "line") + " omitted …"))
	}
	if o.dropped > 0 {
		o.write(faint("… " + count(o.dropped, "piece") + " not shown because the terminal is too slow …"))
	}
	for _, row := range o.tail {
		o.write(row)
	}
	o.tail = nil
}
