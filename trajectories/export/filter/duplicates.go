package filter

import (
	"math"

	"github.com/minibench/mini/trajectories/export"
)

// minSimilarity is the lowest similarity that can be requested. Below it, attempts
// are hardly duplicates, and all pairs would have to be compared.
const minSimilarity = 0.5

// duplicates has the signatures of the kept attempts: 16 bytes each to find exact
// copies and, to find similar ones, 256 bytes of hashes and about 20 bytes per band.
//
// Similar attempts have a band in common: a sequence of minimum hashes. The number of
// bands and their length are chosen so that one in a thousand pairs of the requested
// similarity is missed.
type duplicates struct {
	threshold   float64
	rows, bands int
	exact       map[[16]byte]int32
	names       []string
	removed     map[int32]bool
	mins        [][classes]uint8
	newest      []map[uint32]int32 // by band: hash -> newest attempt
	previous    [][]int32          // by band and attempt: the previous attempt with the same hash, or -1
}

func newDuplicates(threshold float64) *duplicates {
	d := &duplicates{threshold: threshold, exact: map[[16]byte]int32{}, removed: map[int32]bool{}}
	if threshold > 0 && threshold < 1 {
		d.rows, d.bands = banding(threshold)
		d.newest, d.previous = make([]map[uint32]int32, d.bands), make([][]int32, d.bands)
		for i := range d.newest {
			d.newest[i] = map[uint32]int32{}
		}
	}
	return d
}

// banding returns the longest band for which few bands are needed. Below a similarity
// of about 0.8 more are needed.
func banding(threshold float64) (rows, bands int) {
	for _, maxBands := range []int{16, 64} {
		for rows = 16; rows > 2; rows-- {
			n := math.Ceil(math.Log(0.001) / math.Log(1-math.Pow(threshold, float64(rows))))
			if n <= float64(maxBands) && n*float64(rows) <= classes {
				return rows, int(n)
			}
		}
	}
	return 3, classes / 3
}

// match is an earlier attempt that is similar.
type match struct {
	name       string // name of the earlier attempt
	similarity float64
	exact      bool
}

// find returns the kept attempt that is most similar: an exact copy, else the one
// with the highest similarity, the earliest of several.
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
		i, ok := d.newest[b][d.band(s, b)]
		for ; ok && i >= 0; i = d.previous[b][i] {
			if seen[i] || d.removed[i] {
				continue
			}
			seen[i] = true
			if l := similarity(&d.mins[i], &mins); l > bestSimilarity || l == bestSimilarity && i < best {
				best, bestSimilarity = i, l
			}
		}
	}
	if best < 0 || bestSimilarity < d.threshold {
		return match{}, false
	}
	return match{d.names[best], bestSimilarity, false}, true
}

// add adds an attempt that is kept.
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
		hash, last := d.band(s, b), int32(-1)
		if head, ok := d.newest[b][hash]; ok {
			last = head
		}
		d.previous[b] = append(d.previous[b], last)
		d.newest[b][hash] = i
	}
}

// remove removes an attempt that was dropped later.
func (d *duplicates) remove(s signature) {
	if i, ok := d.exact[s.exact]; ok {
		d.removed[i] = true
		delete(d.exact, s.exact)
	}
}

// band returns the hash of a band.
func (d *duplicates) band(s signature, b int) uint32 {
	h := uint64(b)
	for _, m := range s.mins[b*d.rows : (b+1)*d.rows] {
		h = mix(h ^ m)
	}
	return uint32(h)
}

// lowBytes returns the lowest byte of each hash.
func lowBytes(mins *[classes]uint64) (out [classes]uint8) {
	for i, m := range mins {
		out[i] = uint8(m)
	}
	return out
}

// similarity estimates the similarity. Bytes of different hashes are equal with
// probability 1/256.
func similarity(a, b *[classes]uint8) float64 {
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	const chance = 1.0 / 256
	return max(0, (float64(same)/classes-chance)/(1-chance))
}

// checkDuplicate is the last filter: attempts that pass it are added to f.duplicates.
func (f *Filter) checkDuplicate(it *export.Item, sig signature) DropReason {
	found, ok := f.duplicates.find(sig)
	if !ok {
		f.duplicates.add(sig, nameOf(it))
		return ""
	}
	f.stats.addPair(nameOf(it), found, f.cfg.Dedupe > 0)
	switch {
	case f.cfg.Dedupe == 0:
		return ""
	case found.exact:
		return dropReason("duplicate", "exact copy")
	default:
		return dropReason("duplicate", "near copy")
	}
}
