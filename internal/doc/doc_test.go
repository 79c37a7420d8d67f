package doc_test

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/doc"
)

func example() *doc.Doc {
	d := &doc.Doc{}
	d.Heading("what happened")
	d.Paragraph("", 0, 1) // adds nothing
	d.Paragraph("a sentence of some words that is wrapped", 2, 2)
	d.List("names", []string{"first", "second", "third", "a name that does not fit"}, 1)
	d.Line(2, "mini report %s", "a folder with a long name")
	d.Blank()
	d.Blocks = append(d.Blocks, doc.Block{
		Kind: doc.Table, Columns: "lrr", Keep: 2, Rows: [][]string{{"class", "count", "wide column that goes"}, {"a|b", "1", "2"}},
		Below: map[int]*doc.Doc{1: {Blocks: []doc.Block{{Text: "*why*", Indent: 4, Lines: 1}}}},
	})
	d.Table("lw", [][]string{{"short", "words"}, {"longer", "words that are wrapped below each other, if there is room for them"}})
	d.Table("lc", [][]string{{"x", "mini report a-folder-with-a-long-name"}})
	d.Excerpt("one\ntwo\x1b[2J\nthree\n", "$ ", 2)
	d.Excerpt("one\ntwo\nthree\n", "> ", -1)
	return d
}

func TestText(t *testing.T) {
	want := `what happened
  a sentence of some words
  that is wrapped
names: first and 3 more
  mini report a folder with a long name

class  count
a|b        1
    *why*
short   words
longer
    words that are wrapped
    below each other, if there
    is room for them
x
    mini report a-folder-with-a-long-name
$ one
  two�[2J
  … and 1 more line
> …
> three
`
	if diff := cmp.Diff(want, example().Text(30)); diff != "" {
		t.Error(diff)
	}
	for width := range 60 {
		for line := range strings.Lines(example().Text(width)) {
			if ansi.Strip(line) != line {
				t.Errorf("control characters: %q", line)
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	want := "### what happened\n\na sentence of some words that is wrapped\n\nnames: first, second, third, a name that does not fit\n\n" +
		"```\nmini report a folder with a long name\n```\n\n" +
		"| class | count | wide column that goes |\n|---|---:|---:|\n| a\\|b | 1 | 2 |\n\n\\*why\\*\n\n" +
		"| short | words |\n|---|---|\n| longer | words that are wrapped below each other, if there is room for them |\n\n" +
		"| x | mini report a-folder-with-a-long-name |\n|---|---|\n\n" +
		"```\none\ntwo�[2J\nthree\n```\n\n```\none\ntwo\nthree\n```\n"
	var b strings.Builder
	if err := example().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	// A fence in an excerpt does not end its block.
	d := &doc.Doc{}
	d.Excerpt("```\n<script>", "", 9)
	b.Reset()
	_ = d.WriteMarkdown(&b)
	if b.String() != "````\n```\n<script>\n````\n" {
		t.Errorf("%s", &b)
	}
}
