package cmdutil

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// Messages is a writer for stderr. While a full-screen view is active it diverts lines to the
// view, and can hold them until the view closes.
type Messages struct {
	W io.Writer // the underlying writer

	mu      sync.Mutex
	divert  func(line string) // receives lines while a view is active; else nil
	hold    bool
	held    bytes.Buffer
	dropped int // lines not held because of MaxHeldLines
}

// MaxHeldLines bounds the lines held while a view is active. The files of a run have all of
// them.
const MaxHeldLines = 20

// Write implements io.Writer.
func (m *Messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.divert == nil {
		return m.W.Write(p)
	}
	if m.hold {
		m.held.Write(p) // few: not counted
	}
	for line := range strings.Lines(string(p)) {
		m.divert(strings.TrimRight(line, "\n"))
	}
	return len(p), nil
}

// File returns the underlying file, or nil.
func (m *Messages) File() *os.File {
	f, _ := m.W.(*os.File)
	return f
}

// Divert sends lines to say from now on. If hold is set they are also kept for Release.
func (m *Messages) Divert(say func(line string), hold bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.divert, m.hold = say, hold
}

// SetView diverts lines to a view while say is not nil. If say is nil, the user has sent the
// view to the background: held lines are printed.
func (m *Messages) SetView(say func(line string)) {
	if say != nil {
		m.Divert(say, true)
		return
	}
	m.Release()
	_, _ = fmt.Fprintln(m, "mini: running in the background with plain output; fg restores the screen")
}

// Release stops diverting and prints the held lines.
func (m *Messages) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.divert = nil
	_, _ = m.held.WriteTo(m.W)
	m.held.Reset()
	if m.dropped > 0 {
		_, _ = fmt.Fprintf(m.W, "      and %d more lines; results.json has all of it\n", m.dropped)
		m.dropped = 0
	}
}

// heldWriter holds text that the view shows in its own form.
type heldWriter struct{ *Messages }

// Write implements io.Writer.
func (h heldWriter) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.divert == nil:
	case bytes.Count(h.held.Bytes(), []byte("\n")) >= MaxHeldLines:
		h.dropped++
	default:
		h.held.Write(p)
	}
	return len(p), nil
}

// undivertedWriter drops text that a view makes redundant.
type undivertedWriter struct{ *Messages }

// Write implements io.Writer.
func (u undivertedWriter) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.divert != nil {
		return len(p), nil
	}
	return u.W.Write(p)
}

// directWriter writes to the underlying writer even while lines are diverted.
type directWriter struct{ *Messages }

// Write implements io.Writer.
func (d directWriter) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.W.Write(p)
}

// FormatNote prefixes text with "mini: " and wraps it to TextWidth.
func FormatNote(text string) string {
	const lead = "mini: "
	text = ansi.Wordwrap(text, TextWidth-len(lead), "")
	return lead + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(lead)))
}

// PrintWarnings prints each warning on its own line.
func PrintWarnings(w io.Writer, warnings []string) {
	for _, text := range warnings {
		_, _ = fmt.Fprintln(w, "mini: warning:", Sanitize(text))
	}
}

// TextWidth is the width of wrapped text in columns.
const TextWidth = 80

// Direct returns a writer that bypasses the view.
func (m *Messages) Direct() io.Writer { return directWriter{m} }

// UnlessDiverted returns a writer that drops text while a view is active.
func (m *Messages) UnlessDiverted() io.Writer { return undivertedWriter{m} }

// HeldOnly returns a writer whose text is held until Release. Without a view it drops text.
func (m *Messages) HeldOnly() io.Writer { return heldWriter{m} }
