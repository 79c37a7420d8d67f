// Package doc holds a text for people as data: headings, paragraphs, lists, tables. What makes a Doc does not
// know how wide the text is shown. A Doc is written as text of a width, or as Markdown.
//
// Strings in a Doc may be untrusted: they are made printable, or escaped, where the Doc is written.
package doc

import "fmt"

// Doc is a text in blocks. The zero value is empty.
type Doc struct {
	Blocks []Block
}

// Block is a part of a Doc. Kind says which fields count.
type Block struct {
	Kind Kind
	// Text of a Heading, a Paragraph, a Line, an Excerpt, or the label of a List.
	Text string
	// Indent is the number of spaces before the lines of a Paragraph, Line or Excerpt. Markdown has none.
	Indent int
	// Lines is the greatest number of lines of a Paragraph, a List or an Excerpt; what is longer is cut. The text of
	// an Excerpt is cut at its start if Lines is negative.
	Lines int
	// Mark precedes the first line of an Excerpt.
	Mark string
	// Items of a List.
	Items []string
	// Columns has a letter for each column of a Table; see Table.
	Columns string
	Rows    [][]string
	// Below has what is written below a row, by the number of the row.
	Below map[int]*Doc
	// Keep is the number of columns that a Table keeps if it is too wide: those after them go, from the
	// right. 0 keeps all.
	Keep int
}

// Kind is the kind of a Block.
type Kind int

// The kinds of blocks.
const (
	Paragraph Kind = iota // words, wrapped
	Heading               // the title of what follows
	Line                  // a line that is never cut or wrapped, such as a command or a path
	List                  // a label and as many items as fit
	Excerpt               // lines of a program's text, each cut at the width
	Table                 // rows, the first of which is the head
	Blank                 // an empty line
)

// Limits of lists, and of the words of a heading.
const (
	maxListed    = 20
	headingLines = 4
)

// Add adds the blocks of another Doc.
func (d *Doc) Add(other *Doc) {
	if other != nil {
		d.Blocks = append(d.Blocks, other.Blocks...)
	}
}

// Blank adds an empty line.
func (d *Doc) Blank() { d.Blocks = append(d.Blocks, Block{Kind: Blank}) }

// Heading adds the title of what follows.
func (d *Doc) Heading(title string) { d.Blocks = append(d.Blocks, Block{Kind: Heading, Text: title}) }

// Paragraph adds words of at most a number of lines. Empty words add nothing.
func (d *Doc) Paragraph(words string, indent, lines int) {
	if words != "" {
		d.Blocks = append(d.Blocks, Block{Kind: Paragraph, Text: words, Indent: indent, Lines: lines})
	}
}

// Line adds a line that is never cut, so that users can copy it.
func (d *Doc) Line(indent int, format string, args ...any) {
	d.Blocks = append(d.Blocks, Block{Kind: Line, Text: fmt.Sprintf(format, args...), Indent: indent})
}

// List adds a label and as many of the items as fit in a number of lines. Without items it adds nothing.
func (d *Doc) List(label string, items []string, lines int) {
	if len(items) > 0 {
		d.Blocks = append(d.Blocks, Block{Kind: List, Text: label, Items: items, Lines: lines})
	}
}

// Excerpt adds the first lines of a program's text or, if lines is negative, the last -lines. mark precedes the
// first.
func (d *Doc) Excerpt(text, mark string, lines int) {
	if text != "" {
		d.Blocks = append(d.Blocks, Block{Kind: Excerpt, Text: text, Mark: mark, Lines: lines})
	}
}

// Table adds rows, the first of which is the head. Each column has a letter: l is aligned to the left and r to the
// right; s may be cut at its end, and i, for ids, in its middle; w, in the last column, is wrapped; c, in the last
// column, is never cut. What does not fit beside the other columns has lines of its own.
func (d *Doc) Table(columns string, rows [][]string) {
	if len(rows) > 0 {
		d.Blocks = append(d.Blocks, Block{Kind: Table, Columns: columns, Rows: rows})
	}
}
