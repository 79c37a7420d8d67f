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

// The similarity of two texts is the Jaccard similarity of their sets of shingles, which
// are sequences of five words. This file estimates it by MinHash with one permutation:
// it divides shingles into 256 classes by their hash, and compares the lowest bytes of the
// minimum hashes of each class. A class without shingles gets the hash of another class.

const (
	// shingleWords is the number of words of a shingle.
	shingleWords = 5
	// classes is the number of minimum hashes. The standard error is 0.02 at a
	// similarity of 0.9.
	classes = 256
)

// signature is the data of an attempt that is compared with that of others.
type signature struct {
	empty bool             // the model wrote no text
	exact [16]byte         // hash of the text
	mins  *[classes]uint64 // nil if similarity is not needed
}

// newSignature computes the signature of the text that the model wrote. It ignores other
// messages, since prompts and observations of all attempts on an instance are similar.
// Computing the minimum hashes takes longer than all other filters, so newSignature does
// it only if withMins is set.
func newSignature(item *export.Item, reasoning, withMins bool) signature {
	m := newMinima()
	hash := sha256.New()
	empty := true
	var terminated []byte
	addText := func(text string) {
		if withMins {
			m.addText(text)
		}
		empty = empty && strings.TrimSpace(text) == ""
	}
	addHashedText := func(text string) {
		if text == "" {
			return
		}
		addText(text)
		terminated = append(append(terminated[:0], text...), 0)
		_, _ = hash.Write(terminated) // never fails
	}
	for _, e := range item.Entries {
		if e.Cause != trajectories.CauseReply {
			continue
		}
		if reasoning {
			addHashedText(e.Reasoning)
		}
		addHashedText(e.Content)
		for _, call := range e.ToolCalls {
			addHashedText(call.Arguments)
		}
		if len(e.ToolCalls) == 0 {
			continue // the content contains the commands
		}
		for _, command := range e.Actions {
			addText(command) // the arguments contain commands only with JSON escapes
		}
	}
	s := signature{empty: empty}
	if withMins {
		s.mins = m.fillEmpty()
	}
	copy(s.exact[:], hash.Sum(nil))
	return s
}

// minima computes minimum hashes.
type minima struct {
	mins     [classes]uint64      // math.MaxUint64 for classes without shingles
	last     [shingleWords]uint64 // ring buffer of word hashes
	words    int                  // number of words of the current text so far
	shingles int                  // number of shingles so far
}

func newMinima() *minima {
	m := &minima{}
	for i := range m.mins {
		m.mins[i] = math.MaxUint64
	}
	return m
}

// addText adds the shingles of a text. A word is a sequence of letters, digits and _; the
// case of ASCII letters is ignored. Each other character except white space is a word,
// since such characters matter in commands.
func (m *minima) addText(text string) {
	m.words = 0
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
		m.addWord(text[:end])
		text = text[end:]
	}
	if m.words > 0 && m.words < shingleWords {
		m.addShingle() // a text of fewer words is one shingle
	}
}

// wordEnd returns the length of the word at the start of text. It does not decode ASCII,
// which is faster.
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

// addWord adds a word, hashed by FNV-1a, and the shingle that ends with it.
func (m *minima) addWord(word string) {
	h := uint64(14695981039346656037)
	for i := range len(word) {
		c := word[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		h = (h ^ uint64(c)) * 1099511628211
	}
	m.last[m.words%shingleWords] = h
	m.words++
	if m.words >= shingleWords {
		m.addShingle()
	}
}

// addShingle adds the shingle of the last words.
func (m *minima) addShingle() {
	var h uint64
	for i := max(0, m.words-shingleWords); i < m.words; i++ {
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

// fillEmpty returns the minimum hashes. A class without shingles gets the hash of another
// class. The order in which fillEmpty tries other classes is the same for all texts, so
// that similar texts stay similar.
func (m *minima) fillEmpty() *[classes]uint64 {
	filled := m.mins
	if m.shingles == 0 {
		return &filled
	}
	for i := range filled {
		source := i
		for try := uint64(1); m.mins[source] == math.MaxUint64; try++ {
			class, _ := bits.Mul64(mix(uint64(i)<<32|try), classes)
			source = int(class)
		}
		filled[i] = m.mins[source]
	}
	return &filled
}
