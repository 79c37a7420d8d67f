package sieve

import (
	"crypto/sha256"
	"math"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// Likeness is Jaccard's: of the runs of five words that either of two texts has,
// the share that both have. It is estimated by the smallest hash in each of some
// hundred classes of runs (one permutation, with empty classes filled from
// others), of which a byte each is kept.

const (
	// words is how many words a run has.
	words = 5
	// classes is how many smallest hashes there are. The estimate is off by
	// 0.02 at a likeness of 0.9, one time in three.
	classes = 256
)

// signature is what is kept of an attempt to compare it with others.
type signature struct {
	empty bool
	exact [16]byte         // of the text, to the byte
	mins  *[classes]uint64 // nil where nobody asks for likeness
}

// sign makes the signature of what the model wrote: prompts and observations
// are alike for all attempts of an instance. Where nobody asks for likeness it has
// no smallest hashes, which take longer than all else that a sieve does.
func sign(it *export.Item, reasoning, likeness bool) signature {
	m := newMinima()
	whole := sha256.New()
	empty := true
	var bytes []byte
	look := func(text string) {
		if likeness {
			m.text(text)
		}
		empty = empty && strings.TrimSpace(text) == ""
	}
	write := func(text string) {
		if text == "" {
			return
		}
		look(text)
		bytes = append(append(bytes[:0], text...), 0)
		_, _ = whole.Write(bytes) // never fails
	}
	for _, e := range it.Entries {
		if e.Cause != trajectories.CauseReply {
			continue
		}
		if reasoning {
			write(e.Reasoning)
		}
		write(e.Content)
		for _, call := range e.Calls {
			write(call.Arguments)
		}
		if len(e.Calls) == 0 {
			continue // commands are in the content
		}
		for _, command := range e.Actions {
			look(command) // as its arguments, without JSON's escapes
		}
	}
	s := signature{empty: empty}
	if likeness {
		s.mins = m.filled()
	}
	copy(s.exact[:], whole.Sum(nil))
	return s
}

// minima are the smallest hashes on the way.
type minima struct {
	mins [classes]uint64
	last [words]uint64 // the words of the run, a ring
	n    int           // words so far
	runs int
}

func newMinima() *minima {
	m := &minima{}
	for i := range m.mins {
		m.mins[i] = math.MaxUint64
	}
	return m
}

// text adds the runs of a text, which do not go over its ends. Words are
// letters and digits, in any case; every other sign is a word of its own, since
// in commands they matter.
func (m *minima) text(text string) {
	m.n = 0
	for len(text) > 0 {
		end := wordEnd(text)
		if end == 0 {
			r, size := utf8.DecodeRuneInString(text)
			if unicode.IsSpace(r) {
				text = text[size:]
				continue
			}
			end = size
		}
		m.word(text[:end])
		text = text[end:]
	}
	if m.n > 0 && m.n < words {
		m.run() // a short text is one run
	}
}

// wordEnd is where the word ends that a text begins with. Nearly all are ASCII,
// and need no decoding.
func wordEnd(text string) int {
	for n := 0; n < len(text); {
		r, size := rune(text[n]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[n:])
		}
		if !wordRune(r) {
			return n
		}
		n += size
	}
	return len(text)
}

func wordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// word takes in a word, by its hash (FNV-1a), and the run that it ends.
func (m *minima) word(w string) {
	h := uint64(14695981039346656037)
	for i := range len(w) {
		c := w[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		h = (h ^ uint64(c)) * 1099511628211
	}
	m.last[m.n%words] = h
	m.n++
	if m.n >= words {
		m.run()
	}
}

// run takes in the last words, in their order.
func (m *minima) run() {
	var h uint64
	for i := max(0, m.n-words); i < m.n; i++ {
		h = h*0x9e3779b97f4a7c15 + m.last[i%words]
	}
	h = mix(h)
	m.runs++
	class := &m.mins[h>>(64-8)]
	*class = min(*class, mix(h))
}

// mix makes every bit depend on every other (the end of splitmix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// filled gives classes without a run the hash of another one, found in an order
// that is the same for all texts, so that like texts stay alike.
func (m *minima) filled() *[classes]uint64 {
	out := m.mins
	if m.runs == 0 {
		return &out
	}
	for i := range out {
		at := i
		for try := uint64(1); m.mins[at] == math.MaxUint64; try++ {
			hash, _ := bits.Mul64(mix(uint64(i)<<32|try), classes)
			at = int(hash)
		}
		out[i] = m.mins[at]
	}
	return &out
}
