package markdown_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/markdown"
)

func TestLines(t *testing.T) {
	const text, heading, item, fence, code = markdown.Text, markdown.Heading, markdown.Item, markdown.Fence, markdown.Code
	const quote, row, rule = markdown.Quote, markdown.Row, markdown.Rule
	for _, tt := range []struct {
		lines string
		want  []markdown.Kind
	}{
		{"a\n# b\n####### c\n#d\n- e\n  2. f\n-g\n* h\n1) i\n1234567890. j\n---\n- ", []markdown.Kind{text, heading, text, text, item, item, text, item, item, text, rule, text}},
		{"> a\n | b |\n* * *\n**bold**", []markdown.Kind{quote, row, rule, text}},
		{"```go\n# a\n````\nb", []markdown.Kind{fence, code, fence, text}},
		{"````\n```\n````", []markdown.Kind{fence, code, fence}},
		{"~~~ `x`\n```\n~~~\n``` a`b", []markdown.Kind{fence, code, fence, text}},
		{"```\n- a\n``` go", []markdown.Kind{fence, code, code}},
	} {
		var s markdown.Scanner
		var got []markdown.Kind
		for line := range strings.SplitSeq(tt.lines, "\n") {
			got = append(got, s.Line(line))
		}
		assert.Equal(t, fmt.Sprint(tt.want), fmt.Sprint(got), "%q", tt.lines)
	}
}

func TestSpans(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"plain", "plain"},
		{"a `b` c", "a [0`b`] c"},
		{"``a`b`` `c", "[0``a`b``] `c"},
		{"**a b** and *c*", "[1**a b**] and [2*c*]"},
		{"*.py and *.go", "*.py and *.go"},
		{"2 * 3 * 4, a*b*c", "2 * 3 * 4, a*b*c"},
		{"__init__ and **kwargs, *args", "__init__ and **kwargs, *args"},
		{"`*a*` *`b`*", "[0`*a*`] [2*[0`b`]*]"},
		{"**a `b` [c](d)**", "[1**a [0`b`] [3[c](d)]**]"},
		{"[a](b) [c] (d) [e](f g) [](h) `[i](j)`", "[3[a](b)] [c] (d) [e](f g) [](h) [0`[i](j)`]"},
		{"**ä**: x", "[1**ä**]: x"},
		{"*** ***", "*** ***"},
		{"**", "**"},
		{`\*esc\* a\_b **x\*y** \a`, `[4\*]esc[4\*] a[4\_]b [1**x[4\*]y**] \a`},
		{"", ""},
	} {
		marks := map[int]string{}
		for _, s := range markdown.Spans(tt.line) {
			marks[s.Start] += fmt.Sprintf("[%d", s.Style)
			marks[s.End] += "]"
		}
		got := ""
		for i := range len(tt.line) + 1 {
			got += marks[i] + tt.line[i:min(i+1, len(tt.line))]
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.line, got, tt.want)
		}
	}
}

// Text that is made to be slow takes linear time.
func TestHostileText(t *testing.T) {
	start := time.Now()
	for _, piece := range []string{"`", "*", "**a", "*a ", "a* ", "`a", "``a`", "- ", "#", "1", "[a](", "**a**", `\*`} {
		line := strings.Repeat(piece, 1<<20/len(piece))
		var s markdown.Scanner
		s.Line(line)
		markdown.Spans(line)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestCells(t *testing.T) {
	for row, want := range map[string]string{
		"| a | b |": "a,b", "|a|`b|c`|": "a,`b|c`", `| a \| b | |`: `a \| b,`, "|": "", "": "",
	} {
		if got := strings.Join(markdown.Cells(row), ","); got != want {
			t.Errorf("%q: %q, want %q", row, got, want)
		}
	}
	for row, want := range map[string]bool{"|---|:-:|": true, "| - |": true, "|a|-|": false, "|": false} {
		if got := markdown.IsDelimiter(markdown.Cells(row)); got != want {
			t.Errorf("%q: %t", row, got)
		}
	}
}
