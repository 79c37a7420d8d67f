package screen

import (
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/safe"
	tty "github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
)

// tail is a text that comes in pieces; only its end is kept.
type tail struct {
	text string
	cut  bool // its beginning is gone
}

// maxTail is how much of a text is kept that is being written, in bytes: more
// than any screen shows.
const maxTail = 32 << 10

func (t *tail) add(s string) {
	t.text += s
	if over := len(t.text) - maxTail; over > maxTail/2 { // not each time
		t.text, t.cut = strings.ToValidUTF8(t.text[over:], ""), true
	}
}

// turn is what is live of a model's turn, and of the command that runs.
type turn struct {
	reply, thought tail

	running bool
	out     *output
}

// rows is the end of what is live, in at most most rows.
func (t *turn) rows(w, most int, thinking bool) []string {
	if most <= 0 {
		return nil
	}
	var rows []string
	switch {
	case t.running && t.out != nil:
		return t.out.live(w, most)
	case t.reply.text != "":
		rows = proseRows(safe.Text(lastPart(t.reply.text, w*most)), w)
	case t.thought.text != "" && thinking:
		rows = each(proseRows(safe.Text(lastPart(t.thought.text, w*most)), w), faint)
	}
	if len(rows) > most {
		rows = rows[len(rows)-most:]
	}
	return rows
}

// lastPart is at least so many columns from the end of a text. Where it begins
// stays the same while more comes, for a while, so that rows do not flow.
func lastPart(s string, columns int) string {
	n := 4 * max(columns, 1) // a sign has up to four bytes
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

// output of a command: its beginning is written above as it comes, its end is
// kept and written when the command is over.
type output struct {
	stream  *safe.Stream
	width   int
	emit    func(row string)
	written int      // rows above
	end     []string // the newest rows that are not above, oldest first
	left    int      // rows that are neither
	more    int64    // bytes that did not come
}

func newOutput(width int, emit func(string)) *output {
	o := &output{width: width, emit: emit}
	o.stream = safe.NewStream(o.line)
	return o
}

func (o *output) line(line string) {
	for _, row := range outputRows(line, o.width) {
		if o.written < headRows {
			o.written++
			o.emit(row)
			continue
		}
		o.end = append(o.end, row)
		if len(o.end) >= 2*tailRows {
			o.left += len(o.end) - tailRows
			o.end = append(o.end[:0], o.end[len(o.end)-tailRows:]...)
		}
	}
}

// outputRows is the beginning of a line, in rows of w columns.
func outputRows(line string, w int) []string {
	rows := steps.Wrap(line, w)
	if len(rows) > rowsPerLine {
		more := tty.Width(strings.Join(rows[rowsPerLine:], ""))
		rows = append(rows[:rowsPerLine], faint("… "+count(more, "column")+" more in this line"))
	}
	return rows
}

// live is the end of the output that is not above, in at most most rows.
func (o *output) live(w, most int) []string {
	rows := o.end
	if rest := o.stream.Rest(); rest != "" {
		rows = append(rows[:len(rows):len(rows)], outputRows(rest, w)...)
	}
	over := len(rows) - most
	if over <= 0 && o.left == 0 {
		return rows
	}
	if most < 2 {
		return rows[max(0, over):]
	}
	over = max(0, over+1) // for the row that says so
	return append([]string{faint("⋮ " + count(o.left+over, "line"))}, rows[over:]...)
}

// close writes what is not above yet.
func (o *output) close() {
	_ = o.stream.Close() // never fails
	if over := len(o.end) - tailRows; over > 0 {
		o.left += over
		o.end = o.end[over:]
	}
	if o.left > 0 || o.more > 0 {
		text := count(o.left, "line") + " left out"
		if o.left == 0 {
			text = ""
		}
		if o.more > 0 {
			text = strings.TrimPrefix(text+" and "+size(o.more)+" not shown", " and ")
		}
		o.emit(faint("… " + text + " …"))
	}
	for _, row := range o.end {
		o.emit(row)
	}
	o.end = nil
}
