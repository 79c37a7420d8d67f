// Package cmdutil contains what the commands share: streams, signals, exit codes,
// argument validation, output, shell completion and the event log.
package cmdutil

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"runtime/debug"

	"golang.org/x/term"

	"github.com/minibench/mini/internal/rootdir"
)

// Streams are the input and output of a command. Out receives results, Err progress and
// messages.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Interactive is true if In and Err are terminals: mini can ask questions.
	Interactive bool
	// OutIsTerminal is true if Out is a terminal: untrusted output must be sanitized.
	OutIsTerminal bool

	Interrupts *Interrupts // diverts Ctrl-C to an interactive session
}

// SystemStreams returns the streams of the process.
func SystemStreams() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Interactive:   term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		OutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
	}
}

// PrintResult prints value as a line of JSON if asJSON is set, else text.
func PrintResult(s Streams, asJSON bool, value any, text string) error {
	if asJSON {
		return json.NewEncoder(s.Out).Encode(value)
	}
	_, err := io.WriteString(s.Out, text)
	return err
}

// PrintText prints text to Out. It sanitizes the text for a terminal.
func (s Streams) PrintText(text string) error {
	if s.OutIsTerminal {
		text = Sanitize(text)
	}
	_, err := io.WriteString(s.Out, text)
	return err
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// FileExists reports whether path exists.
func FileExists(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return err == nil
}

// SetMemory makes the garbage collector run at percent, and more often near a limit in bytes, for commands
// that allocate much memory. It does nothing if the user has set GOGC or GOMEMLIMIT.
func SetMemory(percent int, limit int64) {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// FileSHA256 returns the SHA-256 of a file in hex.
func FileSHA256(path string) (string, error) {
	f, err := rootdir.OpenRegular(path, 0)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // read only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
