package cmdutil

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
)

// Messages is a writer for stderr. While a full-screen view is active, Messages passes lines to the
// view, and can also hold them until the view closes.
type Messages struct {
	W io.Writer // the underlying writer

	mu      sync.Mutex
	divert  func(line string) // receives lines while a view is active; else nil
	hold    bool              // whether Write also holds lines
	held    bytes.Buffer      // printed by Release
	dropped int               // number of writes not held because of MaxHeldLines
}

// MaxHeldLines is the number of held lines from which on the writer of HoldWriter drops text. The
// files of a run contain all lines.
const MaxHeldLines = 20

// Write implements io.Writer.
func (m *Messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.divert == nil {
		return m.W.Write(p)
	}
	if m.hold {
		m.held.Write(p) // such lines are few, so MaxHeldLines does not apply
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

// Divert passes lines to receive from now on. If hold is true, Release prints them later.
func (m *Messages) Divert(receive func(line string), hold bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.divert, m.hold = receive, hold
}

// SetView diverts lines to receive and holds them. If receive is nil, the user has moved mini to the
// background: SetView prints the held lines and stops diverting.
func (m *Messages) SetView(receive func(line string)) {
	if receive != nil {
		m.Divert(receive, true)
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

// heldWriter holds text until Release. The view shows the same facts in its own form.
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

// undivertedWriter drops text while a view is active, which shows the same facts.
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

// FormatNote prefixes text with "mini: ", wraps it to TextWidth and indents the other lines.
func FormatNote(text string) string {
	const prefix = "mini: "
	text = ansi.Wordwrap(text, TextWidth-len(prefix), "")
	return prefix + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(prefix)))
}

// PrintWarnings prints each warning on its own line.
func PrintWarnings(w io.Writer, warnings []string) {
	for _, text := range warnings {
		_, _ = fmt.Fprintln(w, "mini: warning:", Sanitize(text))
	}
}

// maxOutside is how many characters PrintOutside prints.
const maxOutside = 500

// PrintOutside prints what a run with the configuration uses outside of sandboxes, in one line,
// if that is more than the user's model.
func PrintOutside(w io.Writer, cfg *configs.Resolved) {
	if line := cfg.Outside().Line(); line != "" {
		_, _ = fmt.Fprintln(w, "mini: the configuration", text.ClipRunes(text.Printable(line), maxOutside)) // best effort
	}
}

// TextWidth is the width of wrapped text in columns.
const TextWidth = 80

// DirectWriter returns a writer that writes to the underlying writer even while a view is active.
func (m *Messages) DirectWriter() io.Writer { return directWriter{m} }

// UndivertedWriter returns a writer that drops text while a view is active.
func (m *Messages) UndivertedWriter() io.Writer { return undivertedWriter{m} }

// HoldWriter returns a writer that holds text until Release; see MaxHeldLines. Without a view, the
// writer drops the text.
func (m *Messages) HoldWriter() io.Writer { return heldWriter{m} }
