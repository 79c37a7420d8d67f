package filter

import (
	"crypto/sha256"
	"hash/fnv"
	"math"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// The similarity of two texts is the Jaccard similarity of their sets of shingles, which
// are sequences of five words. This file estimates it by MinHash: for each of 256 hash functions
// it compares the lowest byte of the minimum hash of the shingles.

const (
	// shingleWords is the number of words of a shingle.
	shingleWords = 5
	// hashes is the number of minimum hashes. The standard error is 0.02 at a
	// similarity of 0.9.
	hashes = 256
)

// word matches a sequence of letters, digits and _, or any other character except white space,
// since such characters matter in commands.
var word = lazyregexp.New(`[\pL\p{Nd}_]+|\S`)

// signature is the data of an attempt that is compared with that of others.
type signature struct {
	empty bool            // the model wrote no text
	exact [16]byte        // hash of the text
	mins  *[hashes]uint64 // nil if similarity is not needed
}

// newSignature computes the signature of the text that the model wrote. It ignores other
// messages, since prompts and observations of all attempts on an instance are similar.
// Computing the minimum hashes takes longer than all other filters, so newSignature does
// it only if withMins is set.
func newSignature(item *export.Item, reasoning, withMins bool) signature {
	s := signature{empty: true}
	if withMins {
		s.mins = &[hashes]uint64{}
		for i := range s.mins {
			s.mins[i] = math.MaxUint64
		}
	}
	hash := sha256.New()
	addText := func(text string) {
		if withMins {
			addShingles(s.mins, text)
		}
		s.empty = s.empty && strings.TrimSpace(text) == ""
	}
	addHashedText := func(text string) {
		if text == "" {
			return
		}
		addText(text)
		_, _ = hash.Write([]byte(text + "\x00")) // never fails
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
	copy(s.exact[:], hash.Sum(nil))
	return s
}

// addShingles updates the minimum hashes with the shingles of a text. A text of fewer words is
// one shingle.
func addShingles(mins *[hashes]uint64, text string) {
	words := word.FindAllString(strings.ToLower(text), -1)
	for i := 0; i < len(words) && (i == 0 || i+shingleWords <= len(words)); i++ {
		h := fnv.New64a()
		_, _ = h.Write([]byte(strings.Join(words[i:min(i+shingleWords, len(words))], " "))) // never fails
		sum := mix(h.Sum64())
		for n := range mins {
			mins[n] = min(mins[n], mix(sum+uint64(n)*0x9e3779b97f4a7c15))
		}
	}
}

// mix mixes the bits of a hash (finalizer of splitmix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
