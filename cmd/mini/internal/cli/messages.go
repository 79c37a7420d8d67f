package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// messages is stderr as commands and signals see it. While a run is shown in
// another way than by lines, what is written goes there, and is held until it
// can be printed.
type messages struct {
	w io.Writer // where it goes in the end

	mu      sync.Mutex
	say     func(line string) // where it goes instead; nil while it does not
	hold    bool
	held    bytes.Buffer
	dropped int // lines that were too many to hold
}

// maxHeld bounds what is held, in lines: the files of a run have it all.
const maxHeld = 20

// Write implements io.Writer.
func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.say == nil {
		return m.w.Write(p)
	}
	if m.hold {
		m.held.Write(p) // few, and mini's own: not counted
	}
	for line := range strings.Lines(string(p)) {
		m.say(strings.TrimRight(line, "\n"))
	}
	return len(p), nil
}

// file is the file behind it, if there is one.
func (m *messages) file() *os.File {
	f, _ := m.w.(*os.File)
	return f
}

// divert sends lines elsewhere from now on; hold also keeps them for release.
func (m *messages) divert(say func(line string), hold bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.say, m.hold = say, hold
}

// taken follows a view: what is written goes there while say is not nil, and
// what was held is printed when the user has sent it to the background.
func (m *messages) taken(say func(line string)) {
	if say != nil {
		m.divert(say, true)
		return
	}
	m.release()
	_, _ = fmt.Fprintln(m, "mini: in the background, with plain lines; fg brings the screen back") // only for people
}

// release ends that and prints what was held.
func (m *messages) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.say = nil
	_, _ = m.held.WriteTo(m.w) // nobody is left to tell
	m.held.Reset()
	if m.dropped > 0 {
		_, _ = fmt.Fprintf(m.w, "      and %d more lines; results.json has all of it\n", m.dropped)
		m.dropped = 0
	}
}

// onlyHeld is for what the view shows in its own way.
type onlyHeld struct{ *messages }

// Write implements io.Writer.
func (h onlyHeld) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.say == nil:
	case bytes.Count(h.held.Bytes(), []byte("\n")) >= maxHeld:
		h.dropped++
	default:
		h.held.Write(p)
	}
	return len(p), nil
}

// unlessTaken is for lines that the view makes superfluous.
type unlessTaken struct{ *messages }

// Write implements io.Writer.
func (u unlessTaken) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.say != nil {
		return len(p), nil
	}
	return u.w.Write(p)
}

// direct is for what is to be seen whatever messages do.
type direct struct{ *messages }

// Write implements io.Writer.
func (d direct) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.w.Write(p)
}

// said is a sentence of mini's about a run, in lines that fit on any screen.
func said(text string) string {
	const lead = "mini: "
	text = ansi.Wordwrap(text, helpWidth-len(lead), "")
	return lead + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(lead)))
}
