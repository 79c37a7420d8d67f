package replay

import (
	"bytes"
	"fmt"
	"slices"
)

// Limits of one comparison. matchLines normalises only lines that differ; beyond
// maxNormalised they do not match. Texts beyond a limit do not match in another
// order.
const (
	maxNormalised = 1 << 20 // bytes on both sides
	maxShuffled   = 100_000 // lines of texts compared in any order
)

// matchLines reports whether two texts match line by line, or in another order. where
// is the format of the line number in the description of a difference.
func (c *comparison) matchLines(want, got []byte, where string) bool {
	wantRest, gotRest := want, got
	for n := 1; len(wantRest) > 0 || len(gotRest) > 0; n++ {
		wantLine, moreWant := cutLine(&wantRest)
		gotLine, moreGot := cutLine(&gotRest)
		if moreWant && moreGot && (bytes.Equal(wantLine, gotLine) || c.linesMatch(wantLine, gotLine)) {
			continue
		}
		if c.matchShuffled(want, got) {
			return true
		}
		c.difference = describeDifference(fmt.Sprintf(where, n), wantLine, gotLine, moreWant, moreGot)
		return false
	}
	return true
}

// matchShuffled reports whether two texts have the same lines in any order. Programs
// print hash tables and directories in varying order.
func (c *comparison) matchShuffled(want, got []byte) bool {
	n := countLines(want)
	if n > maxShuffled || n != countLines(got) || len(want)+len(got) > c.budget {
		return false
	}
	a, b := c.sorted(want), c.sorted(got)
	if !slices.EqualFunc(a, b, bytes.Equal) {
		return false
	}
	c.addRule("line order")
	return true
}

// sorted returns the normalised lines of a text in sorted order.
func (c *comparison) sorted(text []byte) [][]byte {
	var lines [][]byte
	for line := range bytes.Lines(text) {
		lines = append(lines, c.normalize(line))
	}
	slices.SortFunc(lines, bytes.Compare)
	return lines
}

// cutLine removes and returns the first line of a text, or returns false if the text
// is empty. The line includes its newline, because a missing newline is a difference.
func cutLine(text *[]byte) ([]byte, bool) {
	if len(*text) == 0 {
		return nil, false
	}
	i := bytes.IndexByte(*text, '\n') + 1
	if i == 0 {
		i = len(*text)
	}
	line := (*text)[:i]
	*text = (*text)[i:]
	return line, true
}

func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// startLines returns the start of a truncated output, without its incomplete last
// line. It returns all of a complete output.
func (o output) startLines() []byte {
	if !o.truncated {
		return o.text
	}
	text := o.text[:o.head]
	return text[:bytes.LastIndexByte(text, '\n')+1]
}

// endLines returns the end of a truncated output, without its incomplete first line.
// It returns all of a complete output.
func (o output) endLines() []byte {
	if !o.truncated {
		return o.text
	}
	text := o.text[o.head:]
	return text[bytes.IndexByte(text, '\n')+1:]
}

// firstLines returns the first n lines of a text.
func firstLines(text []byte, n int) []byte {
	rest := text
	for ; n > 0 && len(rest) > 0; n-- {
		cutLine(&rest)
	}
	return text[:len(text)-len(rest)]
}

// lastLines returns the last n lines of a text.
func lastLines(text []byte, n int) []byte {
	return text[len(firstLines(text, max(countLines(text)-n, 0))):]
}

// trimToShorter cuts both texts to the number of lines of the shorter one. cut is
// firstLines or lastLines.
func trimToShorter(a, b []byte, cut func([]byte, int) []byte) (x, y []byte) {
	n := min(countLines(a), countLines(b))
	return cut(a, n), cut(b, n)
}
