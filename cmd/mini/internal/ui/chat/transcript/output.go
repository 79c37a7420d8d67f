package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/difflines"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
)

const (
	maxOutput  = 12  // rows of an output, with the note about the others
	headRows   = 5   // of them at its beginning, if it has more
	minFolded  = 2   // lines of an output that is not shown again
	maxColumns = 240 // columns of a line

	// maxFullOutput bounds the output that Ctrl-O shows, in bytes.
	maxFullOutput = 4 << 20
)

// earlier is an output that was shown.
type earlier struct {
	step int
	head []string
	sum  string
}

// output is the output of a running command. Its first lines are shown as they arrive, unless an
// earlier output begins with the same lines; its last lines, when the command has ended.
type output struct {
	t       *Transcript
	stream  *sanitize.Stream
	head    []string // the first lines, styled
	tail    []string // the last lines after them
	lines   int
	same    []earlier // those that begin with the same lines
	written int       // number of lines of head that were printed
	clipped bool      // a line was shortened
	dropped int       // number of events that were dropped
	diff    difflines.Scanner
	full    strings.Builder // the output from its beginning
	sum     hash.Hash
}

func newOutput(t *Transcript) *output {
	o := &output{t: t, sum: sha256.New(), same: slices.Clone(t.outputs)}
	o.stream = sanitize.NewStream(o.addLine)
	return o
}

func (o *output) add(chunk []byte) { _, _ = o.stream.Write(chunk) } // never fails

func (o *output) addLine(line string) {
	_, _ = o.sum.Write([]byte(line + "\n"))
	if room := maxFullOutput - o.full.Len(); room > 0 {
		o.full.WriteString(clip(line, room) + "\n")
	}
	if o.lines++; len(o.head) < headRows {
		o.head = append(o.head, o.style(line))
		o.same = slices.DeleteFunc(o.same, func(e earlier) bool { return len(e.head) < o.lines || e.head[o.lines-1] != o.head[o.lines-1] })
		if len(o.same) == 0 {
			o.writeHead()
		}
		return
	}
	o.tail = append(o.tail, o.style(line))
	if len(o.tail) > 2*maxOutput {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-maxOutput:]...)
	}
}

// writeHead prints the first lines that were not printed yet.
func (o *output) writeHead() {
	o.t.write(o.head[o.written:]...)
	o.written = len(o.head)
}

// style shortens and styles a line.
func (o *output) style(line string) string {
	class := o.diff.Line(line, "")
	note := ""
	if w := terminal.Width(line); w > maxColumns {
		o.clipped = true
		line = ansi.TruncateWc(line, maxColumns, "")
		note = o.t.faint(" … " + text.Count(w-maxColumns, "more column"))
	}
	switch {
	case o.t.plain:
		return ansi.Strip(line) + note
	case strings.Contains(line, "\x1b"):
		return line + note
	case class != "":
		return steps.DiffStyle(class)(line) + note
	}
	return steps.Faint(line) + note
}

// live returns the end of the output, in at most limit rows of the width.
func (o *output) live(limit int) []string {
	limit = min(limit, maxOutput)
	lines := append(o.head[o.written:len(o.head):len(o.head)], o.tail...)
	total := o.lines - o.written
	if unfinished := o.stream.UnfinishedLine(); unfinished != "" {
		diff := o.diff
		lines, total = append(lines, o.style(unfinished)), total+1
		o.diff = diff
	}
	var rows []string
	shown := 0
	for i := len(lines) - 1; i >= 0 && len(rows) < limit; i-- {
		rows, shown = append(steps.HardWrap(lines[i], o.t.Width), rows...), shown+1
	}
	if len(rows) <= limit && shown == total || limit < 2 {
		return rows[max(0, len(rows)-limit):]
	}
	rows = rows[max(0, len(rows)-limit+1):]
	return append([]string{o.t.faint("⋮ " + text.Count(total, "line"))}, rows...)
}

// close prints the output, or the step of an earlier command that had the same one.
func (o *output) close() {
	t := o.t
	_ = o.stream.Close() // never fails
	sum := hex.EncodeToString(o.sum.Sum(nil))
	isSame := func(e earlier) bool { return e.sum == sum }
	if i := slices.IndexFunc(o.same, isSame); i >= 0 && o.written == 0 {
		t.fullText = o.full.String()
		t.write(t.faint("same output as step " + strconv.Itoa(o.same[i].step)))
		return
	}
	o.writeHead()
	if t.step > 0 && o.lines >= minFolded && !slices.ContainsFunc(t.outputs, isSame) {
		t.outputs = append(t.outputs, earlier{t.step, o.head, sum})
	}
	if o.clipped {
		t.fullText = o.full.String()
	}
	if tail := maxOutput - headRows; o.lines-len(o.head) > tail {
		o.tail = o.tail[max(0, len(o.tail)-tail+1):]
	}
	if n := o.lines - len(o.head) - len(o.tail); n > 0 {
		t.write(t.moreRow(n, "output", o.full.String()))
		t.stepOutput = t.fullText
	}
	if o.dropped > 0 {
		t.write(t.faint("… " + text.Count(o.dropped, "piece") + " not shown because the terminal is too slow"))
	}
	t.write(o.tail...)
}
