package cmdutil

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/minibench/mini/internal/text"
)

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

// FormatColumns aligns rows in columns. It replaces the cells in rows by their printable text.
// Callers pass the header as the first row.
func FormatColumns(rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		for i := range cells {
			cells[i] = text.Printable(cells[i])
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) // never fails
	}
	_ = t.Flush() // never fails
	return b.String()
}
