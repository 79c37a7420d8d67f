package process

import "unicode/utf8"

// charCounter counts code points of a stream as utf8.RuneCount would count
// them in the whole: a byte that is not part of valid UTF-8 counts as one.
type charCounter struct {
	n    int64
	part [utf8.UTFMax]byte // the beginning of a character cut by the end of a chunk
	held int
}

func (c *charCounter) add(p []byte) {
	for c.held > 0 && len(p) > 0 {
		c.part[c.held] = p[0]
		c.held++
		p = p[1:]
		c.settle()
	}
	cut := len(p) - partial(p)
	c.n += int64(utf8.RuneCount(p[:cut]))
	c.held += copy(c.part[c.held:], p[cut:])
}

// settle counts what is certain in the held bytes. An invalid sequence counts
// its first byte only; the rest may begin another character.
func (c *charCounter) settle() {
	for c.held > 0 && utf8.FullRune(c.part[:c.held]) {
		_, size := utf8.DecodeRune(c.part[:c.held])
		c.n++
		c.held = copy(c.part[:], c.part[size:c.held])
	}
}

// total counts a character that the end of the stream cut by its bytes.
func (c *charCounter) total() int64 { return c.n + int64(utf8.RuneCount(c.part[:c.held])) }

// partial is the length of the unfinished character at the end of p.
func partial(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
