package replay

import (
	"bytes"
	"fmt"
	"hash/maphash"
)

// Bounds on one comparison. Outputs are mostly equal, and only lines that are
// not are looked at closely; what lies beyond the bounds is compared as it is.
const (
	maxNormalised = 2 << 20 // bytes, of both sides
	maxShuffled   = 100_000 // lines in another order
)

// lines says whether two texts are alike, line by line; where names a line that
// is not, by its number.
func (c *comparison) lines(then, now []byte, where string) bool {
	var s shuffle
	for n := 1; len(then) > 0 || len(now) > 0; n++ {
		a, moreThen := cutLine(&then)
		b, moreNow := cutLine(&now)
		both := moreThen && moreNow
		switch {
		case both && bytes.Equal(a, b):
			continue
		case both && !s.open() && c.alike(a, b):
			continue
		case !s.open():
			c.difference = differ(fmt.Sprintf(where, n), a, b, moreThen, moreNow)
			if !both {
				return false
			}
		}
		var x, y []byte
		if moreThen {
			x = c.plain(a, c.recorded)
		}
		if moreNow {
			y = c.plain(b, c.now)
		}
		if s.take(x, y, both) {
			c.use("line order")
		}
		if s.lines > maxShuffled || !both {
			return false
		}
	}
	if s.open() {
		return false
	}
	c.difference = ""
	return true
}

// shuffle finds lines that are the same in another order, as programs print
// what they keep in a hash or find in a folder: from the first line that is
// another on, until both sides have had the same lines.
type shuffle struct {
	seed   maphash.Seed
	counts map[uint64]int
	uneven int // lines that one side has had more often
	lines  int
}

func (s *shuffle) open() bool { return s.uneven > 0 }

// take adds a line of each side, and says whether that evens them out.
func (s *shuffle) take(then, now []byte, both bool) bool {
	if s.counts == nil {
		s.seed, s.counts = maphash.MakeSeed(), map[uint64]int{}
	}
	s.lines++
	s.add(then, 1)
	if both {
		s.add(now, -1)
	}
	if s.open() {
		return false
	}
	clear(s.counts)
	s.lines = 0
	return true
}

func (s *shuffle) add(line []byte, by int) {
	sum := maphash.Bytes(s.seed, line)
	was := s.counts[sum]
	s.counts[sum] = was + by
	s.uneven += abs(was+by) - abs(was)
}

func abs(n int) int { return max(n, -n) }

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
