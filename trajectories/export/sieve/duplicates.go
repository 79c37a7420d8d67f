package sieve

import (
	"math"

	"github.com/minibench/mini/trajectories/export"
)

// leastLikeness is the lowest likeness that may be asked for. Below it what is
// found would be no duplicates, and finding them would take a look at all pairs.
const leastLikeness = 0.5

// duplicates are the attempts that were kept, as far as later ones are compared
// with them: a hash of sixteen bytes for exact copies and, where likeness
// matters, 256 bytes of signature and some twenty bytes a band.
//
// Attempts that are alike share a band: some of their smallest hashes in a row.
// How many make a band, and how many bands there are, is chosen so that of pairs
// as alike as asked for one in a thousand is missed.
type duplicates struct {
	threshold   float64
	rows, bands int
	exact       map[[16]byte]int32
	names       []string
	dead        map[int32]bool
	mins        [][classes]uint8
	heads       []map[uint32]int32 // of every band, the newest attempt with that hash
	before      [][]int32          // of every band and attempt, the one before with the same; -1 is none
}

func newDuplicates(threshold float64) *duplicates {
	d := &duplicates{threshold: threshold, exact: map[[16]byte]int32{}, dead: map[int32]bool{}}
	if threshold > 0 && threshold < 1 {
		d.rows, d.bands = banding(threshold)
		d.heads, d.before = make([]map[uint32]int32, d.bands), make([][]int32, d.bands)
		for i := range d.heads {
			d.heads[i] = map[uint32]int32{}
		}
	}
	return d
}

// banding is the longest band that is found with few bands; below a likeness of
// about 0.8 that takes more.
func banding(threshold float64) (rows, bands int) {
	for _, most := range []int{16, 64} {
		for rows = 16; rows > 2; rows-- {
			n := math.Ceil(math.Log(0.001) / math.Log(1-math.Pow(threshold, float64(rows))))
			if n <= float64(most) && n*float64(rows) <= classes {
				return rows, int(n)
			}
		}
	}
	return 3, classes / 3
}

// pair is an attempt that is like an earlier one.
type pair struct {
	of       string // the earlier one
	likeness float64
	exact    bool
}

// find is the kept attempt that this one is like: an exact copy, else the
// likest, of those the earliest.
func (d *duplicates) find(s signature) (pair, bool) {
	if s.empty {
		return pair{}, false
	}
	if i, ok := d.exact[s.exact]; ok && !d.dead[i] {
		return pair{d.names[i], 1, true}, true
	}
	if d.bands == 0 {
		return pair{}, false
	}
	best, likeness := int32(-1), 0.0
	mins := short(s.mins)
	tried := map[int32]bool{}
	for b := range d.bands {
		i, ok := d.heads[b][d.band(s, b)]
		for ; ok && i >= 0; i = d.before[b][i] {
			if tried[i] || d.dead[i] {
				continue
			}
			tried[i] = true
			if l := alike(&d.mins[i], &mins); l > likeness || l == likeness && i < best {
				best, likeness = i, l
			}
		}
	}
	if best < 0 || likeness < d.threshold {
		return pair{}, false
	}
	return pair{d.names[best], likeness, false}, true
}

// add remembers an attempt that is kept.
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
	d.mins = append(d.mins, short(s.mins))
	for b := range d.bands {
		hash, last := d.band(s, b), int32(-1)
		if head, ok := d.heads[b][hash]; ok {
			last = head
		}
		d.before[b] = append(d.before[b], last)
		d.heads[b][hash] = i
	}
}

// forget takes back an attempt that was not kept in the end.
func (d *duplicates) forget(s signature) {
	if i, ok := d.exact[s.exact]; ok {
		d.dead[i] = true
		delete(d.exact, s.exact)
	}
}

// band is the hash of one band.
func (d *duplicates) band(s signature, b int) uint32 {
	h := uint64(b)
	for _, m := range s.mins[b*d.rows : (b+1)*d.rows] {
		h = mix(h ^ m)
	}
	return uint32(h)
}

// short keeps a byte of every hash.
func short(mins *[classes]uint64) (out [classes]uint8) {
	for i, m := range mins {
		out[i] = uint8(m)
	}
	return out
}

// alike estimates a likeness. Bytes of different hashes are equal one time in
// 256.
func alike(a, b *[classes]uint8) float64 {
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	const chance = 1.0 / 256
	return max(0, (float64(same)/classes-chance)/(1-chance))
}

// duplicate is the part of the judgement about copies, and the last one: what
// it lets pass is kept.
func (s *Sieve) duplicate(it *export.Item, sig signature) Reason {
	found, ok := s.seen.find(sig)
	if !ok {
		s.seen.add(sig, nameOf(it))
		return ""
	}
	s.report.pair(nameOf(it), found, s.cfg.Dedupe > 0)
	switch {
	case s.cfg.Dedupe == 0:
		return ""
	case found.exact:
		return because("duplicate", "exact copy")
	default:
		return because("duplicate", "near copy")
	}
}
