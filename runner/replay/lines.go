package replay

import (
	"bytes"
	"fmt"
	"slices"
)

// Limits of one comparison. Only lines that differ are normalised; lines beyond the
// limits are compared as they are.
const (
	maxNormalised = 1 << 20 // bytes on both sides
	maxShuffled   = 100_000 // lines compared in any order
)

// matchLines reports whether two texts match line by line. where is the format of a line
// number in the description of a difference.
func (c *comparison) matchLines(want, got []byte, where string) bool {
	a, b := want, got
	for n := 1; len(a) > 0 || len(b) > 0; n++ {
		x, moreWant := cutLine(&a)
		y, moreGot := cutLine(&b)
		if moreWant && moreGot && (bytes.Equal(x, y) || c.linesMatch(x, y)) {
			continue
		}
		if c.matchShuffled(want, got) {
			return true
		}
		c.difference = describeDifference(fmt.Sprintf(where, n), x, y, moreWant, moreGot)
		return false
	}
	return true
}

// matchShuffled reports whether two texts have the same lines in a different order, as
// programs print hash tables and directories.
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

// sorted returns the sorted lines of a text without noise.
func (c *comparison) sorted(text []byte) [][]byte {
	var all [][]byte
	for line := range bytes.Lines(text) {
		all = append(all, c.normalize(line))
	}
	slices.SortFunc(all, bytes.Compare)
	return all
}

// cutLine removes and returns the first line, including its newline: a line without
// one is different. It returns false if there is no line.
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

// first returns the start of an output, in complete lines if it was truncated.
func (o output) first() []byte {
	if !o.truncated {
		return o.text
	}
	text := o.text[:o.head]
	return text[:bytes.LastIndexByte(text, '\n')+1]
}

// last returns the end of an output, in complete lines if it was truncated.
func (o output) last() []byte {
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

// common cuts both texts to the number of lines of the shorter one.
func common(a, b []byte, take func([]byte, int) []byte) (x, y []byte) {
	n := min(countLines(a), countLines(b))
	return take(a, n), take(b, n)
}
