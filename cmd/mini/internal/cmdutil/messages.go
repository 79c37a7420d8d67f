package cmdutil

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

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
		if _, err := io.WriteString(m.W, m.wrap(string(p))); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if m.hold {
		m.held.Write(p) // such lines are few, so MaxHeldLines does not apply
	}
	for line := range strings.Lines(string(p)) {
		m.divert(strings.TrimRight(line, "\n"))
	}
	return len(p), nil
}

// wrap breaks mini's own lines between words if they are longer than a row of the terminal.
func (m *Messages) wrap(text string) string {
	f := m.File()
	if f == nil {
		return text
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < minWidth {
		return text
	}
	const indent = "      " // of the further lines of FormatNote
	var b strings.Builder
	isOwn := false
	for line := range strings.Lines(text) {
		isFurther := isOwn && strings.HasPrefix(line, indent)
		isOwn = isFurther || strings.HasPrefix(line, "mini: ") || strings.HasPrefix(line, "run mini ")
		if !isOwn || ansi.StringWidth(line) <= width {
			b.WriteString(line)
			continue
		}
		used := 0
		if isFurther {
			used, _ = b.WriteString(indent[1:])
		}
		for i, word := range strings.Fields(line) {
			switch n := ansi.StringWidth(word); {
			case used+1+n > width && n <= width && i > 0:
				used = n
				b.WriteString("\n" + word)
			case i == 0 && !isFurther:
				used = n
				b.WriteString(word)
			default:
				used += 1 + n
				b.WriteString(" " + word)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// minWidth is the width of a terminal, in columns, from which on lines are wrapped between words.
const minWidth = 20

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

// viewWriter calls write, which may use the fields of m.
type viewWriter struct {
	m     *Messages
	write func(p []byte) (int, error)
}

// Write implements io.Writer.
func (v viewWriter) Write(p []byte) (int, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	return v.write(p)
}

// DirectWriter returns a writer that writes to the underlying writer even while a view is active.
func (m *Messages) DirectWriter() io.Writer { return viewWriter{m, m.W.Write} }

// UndivertedWriter returns a writer that drops text while a view is active, which shows the same facts.
func (m *Messages) UndivertedWriter() io.Writer {
	return viewWriter{m, func(p []byte) (int, error) {
		if m.divert != nil {
			return len(p), nil
		}
		return m.W.Write(p)
	}}
}

// HoldWriter returns a writer that holds text until Release; see MaxHeldLines. The view shows the same
// facts in its own form. Without a view, the writer drops the text.
func (m *Messages) HoldWriter() io.Writer {
	return viewWriter{m, func(p []byte) (int, error) {
		switch {
		case m.divert == nil:
		case bytes.Count(m.held.Bytes(), []byte("\n")) >= MaxHeldLines:
			m.dropped++
		default:
			m.held.Write(p)
		}
		return len(p), nil
	}}
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
