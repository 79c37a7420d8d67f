package filter

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

// Similarity is the Jaccard similarity of the sets of five-word sequences (shingles)
// of two texts. It is estimated by MinHash with one permutation: shingles are divided
// into 256 classes by their hash, and the lowest byte of the minimum hash of each
// class is compared. Empty classes are filled from others.

const (
	// shingleWords is the number of words of a shingle.
	shingleWords = 5
	// classes is the number of minimum hashes. The standard error is 0.02 at a
	// similarity of 0.9.
	classes = 256
)

// signature is the data about an attempt that is compared.
type signature struct {
	empty bool
	exact [16]byte         // hash of the text
	mins  *[classes]uint64 // nil if similarity is not needed
}

// sign computes the signature of the text that the model wrote. Prompts and
// observations are similar for all attempts on an instance. The minimum hashes take
// more time than all other filters, and are computed only if needed.
func sign(it *export.Item, reasoning, likeness bool) signature {
	m := newMinima()
	hash := sha256.New()
	empty := true
	var bytes []byte
	addText := func(text string) {
		if likeness {
			m.text(text)
		}
		empty = empty && strings.TrimSpace(text) == ""
	}
	write := func(text string) {
		if text == "" {
			return
		}
		addText(text)
		bytes = append(append(bytes[:0], text...), 0)
		_, _ = hash.Write(bytes) // never fails
	}
	for _, e := range it.Entries {
		if e.Cause != trajectories.CauseReply {
			continue
		}
		if reasoning {
			write(e.Reasoning)
		}
		write(e.Content)
		for _, call := range e.ToolCalls {
			write(call.Arguments)
		}
		if len(e.ToolCalls) == 0 {
			continue // the content has the commands
		}
		for _, command := range e.Actions {
			addText(command) // the arguments have them only with JSON escapes
		}
	}
	s := signature{empty: empty}
	if likeness {
		s.mins = m.filled()
	}
	copy(s.exact[:], hash.Sum(nil))
	return s
}

// minima computes minimum hashes.
type minima struct {
	mins     [classes]uint64
	last     [shingleWords]uint64 // ring buffer of word hashes
	n        int                  // words so far
	shingles int
}

func newMinima() *minima {
	m := &minima{}
	for i := range m.mins {
		m.mins[i] = math.MaxUint64
	}
	return m
}

// text adds the shingles of a text. Words are letters and digits, ignoring case.
// Other characters are a word each, since they matter in commands.
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
	if m.n > 0 && m.n < shingleWords {
		m.shingle() // a short text is one shingle
	}
}

// wordEnd returns the length of the word at the start of text. ASCII needs no
// decoding.
func wordEnd(text string) int {
	for n := 0; n < len(text); {
		r, size := rune(text[n]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[n:])
		}
		if !isWordRune(r) {
			return n
		}
		n += size
	}
	return len(text)
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// word adds the hash of a word (FNV-1a), and the shingle that it ends.
func (m *minima) word(w string) {
	h := uint64(14695981039346656037)
	for i := range len(w) {
		c := w[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		h = (h ^ uint64(c)) * 1099511628211
	}
	m.last[m.n%shingleWords] = h
	m.n++
	if m.n >= shingleWords {
		m.shingle()
	}
}

// shingle adds the shingle of the last words.
func (m *minima) shingle() {
	var h uint64
	for i := max(0, m.n-shingleWords); i < m.n; i++ {
		h = h*0x9e3779b97f4a7c15 + m.last[i%shingleWords]
	}
	h = mix(h)
	m.shingles++
	class := &m.mins[h>>(64-8)]
	*class = min(*class, mix(h))
}

// mix mixes the bits of a hash (finalizer of splitmix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// filled fills empty classes with hashes of others, in an order that is the same for
// all texts, so that similar texts stay similar.
func (m *minima) filled() *[classes]uint64 {
	out := m.mins
	if m.shingles == 0 {
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
