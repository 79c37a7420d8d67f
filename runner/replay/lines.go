package replay

import (
	"bytes"
	"fmt"
	"slices"
)

// Bounds on one comparison. Outputs are mostly equal, and only lines that are
// not are looked at closely; what lies beyond the bounds is compared as it is.
const (
	maxNormalised = 1 << 20 // bytes, of both sides
	maxShuffled   = 100_000 // lines in another order
)

// lines says whether two texts are alike, line by line; where names a line that
// is not, by its number.
func (c *comparison) lines(then, now []byte, where string) bool {
	a, b := then, now
	for n := 1; len(a) > 0 || len(b) > 0; n++ {
		x, moreThen := cutLine(&a)
		y, moreNow := cutLine(&b)
		if moreThen && moreNow && (bytes.Equal(x, y) || c.alike(x, y)) {
			continue
		}
		if c.shuffled(then, now) {
			return true
		}
		c.difference = differ(fmt.Sprintf(where, n), x, y, moreThen, moreNow)
		return false
	}
	return true
}

// shuffled says whether two texts have the same lines in another order, as
// programs print what they keep in a hash or find in a folder.
func (c *comparison) shuffled(then, now []byte) bool {
	n := countLines(then)
	if n > maxShuffled || n != countLines(now) || len(then)+len(now) > c.budget {
		return false
	}
	a, b := c.sorted(then), c.sorted(now)
	if !slices.EqualFunc(a, b, bytes.Equal) {
		return false
	}
	c.use("line order")
	return true
}

// sorted are the lines of a text without noise, in order.
func (c *comparison) sorted(text []byte) [][]byte {
	var all [][]byte
	for line := range bytes.Lines(text) {
		all = append(all, c.plain(line))
	}
	slices.SortFunc(all, bytes.Compare)
	return all
}

// cutLine takes the first line off a text, with its end: a line that has none is
// another than one that has. False means that there is none.
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

// first is the beginning of an output, in whole lines where it was cut.
func (o output) first() []byte {
	if !o.cut {
		return o.text
	}
	text := o.text[:o.head]
	return text[:bytes.LastIndexByte(text, '\n')+1]
}

// last is the end of an output, in whole lines where it was cut.
func (o output) last() []byte {
	if !o.cut {
		return o.text
	}
	text := o.text[o.head:]
	return text[bytes.IndexByte(text, '\n')+1:]
}

// firstLines are the first n lines of a text.
func firstLines(text []byte, n int) []byte {
	rest := text
	for ; n > 0 && len(rest) > 0; n-- {
		cutLine(&rest)
	}
	return text[:len(text)-len(rest)]
}

// lastLines are the last n lines of a text.
func lastLines(text []byte, n int) []byte {
	return text[len(firstLines(text, max(countLines(text)-n, 0))):]
}

// common is what both texts have: as many lines as the shorter of them.
func common(a, b []byte, take func([]byte, int) []byte) (x, y []byte) {
	n := min(countLines(a), countLines(b))
	return take(a, n), take(b, n)
}
