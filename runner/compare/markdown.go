package compare

import (
	"io"
	"strings"

	"github.com/minibench/mini/internal/text"
)

// WriteMarkdown writes the comparison as Markdown.
func (r *Result) WriteMarkdown(w io.Writer) error {
	var blocks []string
	for _, s := range r.Sections(false) {
		if s.Title != "" {
			blocks = append(blocks, "### "+markdown(s.Title))
		}
		if s.Sentence != "" {
			blocks = append(blocks, markdown(s.Sentence))
		}
		for _, p := range s.Before {
			blocks = append(blocks, markdown(strings.TrimSpace(p)))
		}
		if len(s.Rows) > 1 {
			blocks = append(blocks, markdownTable(s))
		}
		for _, p := range s.After {
			blocks = append(blocks, markdown(p))
		}
	}
	_, err := io.WriteString(w, strings.Join(blocks, "\n\n")+"\n")
	return err
}

func markdownTable(s Section) string {
	var lines []string
	for n, row := range s.Rows {
		line := "|"
		for _, cell := range row {
			line += " " + markdown(cell) + " |"
		}
		lines = append(lines, line)
		if n > 0 {
			continue
		}
		rule := "|"
		for _, c := range s.Columns {
			if c == 'r' {
				rule += "---:|"
			} else {
				rule += "---|"
			}
		}
		lines = append(lines, rule)
	}
	return strings.Join(lines, "\n")
}

// markdownSpecial escapes what Markdown or HTML would interpret.
var markdownSpecial = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "&", "&amp;", "`", "\\`", "*", `\*`, "[", `\[`, "_", `\_`)

func markdown(s string) string { return markdownSpecial.Replace(text.Printable(s)) }
