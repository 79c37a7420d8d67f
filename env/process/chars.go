package process

import "unicode/utf8"

// charCounter counts the code points of a stream, as utf8.RuneCount does for a slice:
// each byte that is not part of valid UTF-8 counts as one.
type charCounter struct {
	n          int64
	pending    [utf8.UTFMax]byte // the incomplete character at the end of the last chunk
	pendingLen int
}

func (c *charCounter) add(p []byte) {
	for c.pendingLen > 0 && len(p) > 0 {
		c.pending[c.pendingLen] = p[0]
		c.pendingLen++
		p = p[1:]
		c.countPending()
	}
	cut := len(p) - incompleteSuffix(p)
	c.n += int64(utf8.RuneCount(p[:cut]))
	c.pendingLen += copy(c.pending[c.pendingLen:], p[cut:])
}

// countPending counts the complete characters in the pending bytes. An invalid
// sequence counts its first byte only; the rest may begin another character.
func (c *charCounter) countPending() {
	for c.pendingLen > 0 && utf8.FullRune(c.pending[:c.pendingLen]) {
		_, size := utf8.DecodeRune(c.pending[:c.pendingLen])
		c.n++
		c.pendingLen = copy(c.pending[:], c.pending[size:c.pendingLen])
	}
}

// total returns the count. Each byte of an incomplete character at the end of the
// stream counts as one.
func (c *charCounter) total() int64 { return c.n + int64(utf8.RuneCount(c.pending[:c.pendingLen])) }

// incompleteSuffix returns the length in bytes of the incomplete character at the end
// of p; 0 if there is none.
func incompleteSuffix(p []byte) int {
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
