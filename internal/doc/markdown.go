package doc

import (
	"io"
	"strings"

	"github.com/minibench/mini/internal/text"
)

// WriteMarkdown writes the Doc as Markdown, in which no text of a block is markup.
func (d *Doc) WriteMarkdown(w io.Writer) error {
	_, err := io.WriteString(w, strings.Join(d.markdownBlocks(), "\n\n")+"\n")
	return err
}

func (d *Doc) markdownBlocks() (blocks []string) {
	for _, b := range d.Blocks {
		switch b.Kind {
		case Heading:
			blocks = append(blocks, "### "+markdown(b.Text))
		case Paragraph:
			blocks = append(blocks, markdown(b.Text))
		case Line:
			blocks = append(blocks, fenced(b.Text))
		case List:
			blocks = append(blocks, markdown(listLine(b.Text, b.Items, min(len(b.Items), maxListed))))
		case Excerpt:
			blocks = append(blocks, fenced(strings.TrimRight(b.Text, "\n ")))
		case Table:
			blocks = append(blocks, markdownTable(b))
			for i := range b.Rows {
				if below := b.Below[i]; below != nil {
					blocks = append(blocks, below.markdownBlocks()...)
				}
			}
		case Blank:
		}
	}
	return blocks
}

func markdownTable(b Block) string {
	var lines []string
	for n, row := range b.Rows {
		line := "|"
		for _, cell := range row {
			line += " " + markdown(cell) + " |"
		}
		lines = append(lines, line)
		if n > 0 {
			continue
		}
		rule := "|"
		for _, c := range b.Columns {
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

// fenced returns a block of code whose fence is longer than any in the text.
func fenced(content string) string {
	var lines []string
	for line := range strings.SplitSeq(content, "\n") {
		lines = append(lines, text.Printable(line))
	}
	fence := "```"
	for strings.Contains(content, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.Join(lines, "\n") + "\n" + fence
}

// markdownSpecial escapes what Markdown or HTML would interpret.
var markdownSpecial = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "&", "&amp;", "`", "\\`", "*", `\*`, "[", `\[`, "_", `\_`)

func markdown(s string) string { return markdownSpecial.Replace(text.Printable(s)) }
