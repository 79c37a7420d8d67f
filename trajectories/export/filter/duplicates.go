package filter

import (
	"math"

	"github.com/minibench/mini/trajectories/export"
)

// minSimilarity is the minimum of Config.Dedupe, unless that is 0. Attempts that are less
// similar are hardly duplicates, and bands would not reduce the pairs to compare.
const minSimilarity = 0.5

// duplicates has the signatures of the kept attempts. An attempt needs 16 bytes to find
// exact copies and, to find similar ones, 256 bytes of hashes and about 60 bytes per band.
//
// A band is a sequence of minimum hashes at fixed positions. Only attempts that have a
// band in common are compared. The number and the length of bands are chosen so that at
// most one in a thousand pairs with the requested similarity has no band in common.
type duplicates struct {
	threshold   float64
	rows, bands int                // hashes per band, and number of bands
	exact       map[[16]byte]int32 // signature.exact -> attempt
	names       []string           // by attempt, which are numbered from 0
	removed     map[int32]bool     // attempts
	mins        [][hashes]uint8    // by attempt
	bandHashes  map[uint64][]int32 // bandHash -> attempts
}

func newDuplicates(threshold float64) *duplicates {
	d := &duplicates{threshold: threshold, exact: map[[16]byte]int32{}, removed: map[int32]bool{}, bandHashes: map[uint64][]int32{}}
	if threshold > 0 && threshold < 1 {
		d.rows, d.bands = chooseBands(threshold)
	}
	return d
}

// chooseBands returns the number of hashes per band and the number of bands. It chooses
// the longest bands of which 16 suffice or, below a similarity of about 0.7, 64.
func chooseBands(threshold float64) (rows, bands int) {
	for _, maxBands := range []int{16, 64} {
		for rows = 16; rows > 2; rows-- {
			needed := math.Ceil(math.Log(0.001) / math.Log(1-math.Pow(threshold, float64(rows))))
			if needed <= float64(maxBands) && needed*float64(rows) <= hashes {
				return rows, int(needed)
			}
		}
	}
	return 3, hashes / 3
}

// match is an earlier attempt that is similar to a new one.
type match struct {
	name       string // name of the earlier attempt
	similarity float64
	exact      bool
}

// find returns the kept attempt that is most similar: an exact copy, or else, of those with
// a band in common, the attempt with the highest similarity, if that reaches the
// threshold. If there are several, it returns the earliest.
func (d *duplicates) find(s signature) (match, bool) {
	if s.empty {
		return match{}, false
	}
	if i, ok := d.exact[s.exact]; ok && !d.removed[i] {
		return match{d.names[i], 1, true}, true
	}
	if d.bands == 0 {
		return match{}, false
	}
	best, bestSimilarity := int32(-1), 0.0
	mins := lowBytes(s.mins)
	seen := map[int32]bool{}
	for b := range d.bands {
		for _, i := range d.bandHashes[d.bandHash(s, b)] {
			if seen[i] || d.removed[i] {
				continue
			}
			seen[i] = true
			if sim := similarity(&d.mins[i], &mins); sim > bestSimilarity || sim == bestSimilarity && i < best {
				best, bestSimilarity = i, sim
			}
		}
	}
	if best < 0 || bestSimilarity < d.threshold {
		return match{}, false
	}
	return match{d.names[best], bestSimilarity, false}, true
}

// add adds a kept attempt.
func (d *duplicates) add(s signature, name string) {
	if s.empty {
		return
	}
	i := int32(len(d.names))
	d.names = append(d.names, name)
	d.exact[s.exact] = i
	if d.bands == 0 {
		return
	}
	d.mins = append(d.mins, lowBytes(s.mins))
	for b := range d.bands {
		hash := d.bandHash(s, b)
		d.bandHashes[hash] = append(d.bandHashes[hash], i)
	}
}

// remove removes an attempt that was dropped after add.
func (d *duplicates) remove(s signature) {
	if i, ok := d.exact[s.exact]; ok {
		d.removed[i] = true
		delete(d.exact, s.exact)
	}
}

// bandHash returns the hash of band b.
func (d *duplicates) bandHash(s signature, b int) uint64 {
	h := uint64(b)
	for _, m := range s.mins[b*d.rows : (b+1)*d.rows] {
		h = mix(h ^ m)
	}
	return h
}

// lowBytes returns the lowest byte of each hash, to save memory.
func lowBytes(mins *[hashes]uint64) (out [hashes]uint8) {
	for i, m := range mins {
		out[i] = uint8(m)
	}
	return out
}

// similarity estimates the similarity of two attempts. It takes into account that the
// lowest bytes of different hashes are equal with probability 1/256.
func similarity(a, b *[hashes]uint8) float64 {
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	const chance = 1.0 / 256
	return max(0, (float64(same)/hashes-chance)/(1-chance))
}

// checkDuplicate applies the filter for duplicates. It must be the last filter, since it
// adds attempts that pass to f.duplicates.
func (f *Filter) checkDuplicate(item *export.Item, sig signature) DropReason {
	found, ok := f.duplicates.find(sig)
	if !ok {
		f.duplicates.add(sig, displayName(item))
		return ""
	}
	f.stats.addPair(displayName(item), found, f.cfg.Dedupe > 0)
	switch {
	case f.cfg.Dedupe == 0:
		return ""
	case found.exact:
		return dropReason("duplicate", "exact copy")
	default:
		return dropReason("duplicate", "near copy")
	}
}
