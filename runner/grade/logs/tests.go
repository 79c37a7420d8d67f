package logs

import (
	"errors"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
)

// Tests is what became of each test, in the order in which the tests were
// first seen: a test seen again keeps its place and takes the new status. The
// zero value is ready. It keeps nothing of the text it was read from.
type Tests struct {
	entries []entry
	places  map[string]int // of each name in entries
	built   int            // bytes of names that join made
	stored  int            // and of those, bytes that stay
	others  *others        // nil: every test is kept
}

type entry struct {
	name   string
	status Status
}

// Set records a status.
func (t *Tests) Set(name string, s Status) {
	if t.passesOver(name) {
		t.others.set(name, s)
		return
	}
	t.entries[t.place(name)].status = s.own()
}

// place is where a test stands; one not seen before goes last. The caller gives
// it a status.
func (t *Tests) place(name string) int {
	if i, seen := t.places[name]; seen {
		return i
	}
	if t.places == nil {
		t.places = map[string]int{}
	}
	if t.others != nil {
		t.others.forget(name)
	}
	name = strings.Clone(name) // else each name would keep the whole log
	t.entries = append(t.entries, entry{name: name})
	t.places[name] = len(t.entries) - 1
	return len(t.entries) - 1
}

// own is the status without the log it may be a part of.
func (s Status) own() Status {
	for _, known := range statuses {
		if s == known {
			return known
		}
	}
	return Status(strings.Clone(string(s)))
}

// What names made of parts may come to. The heading above a thousand tests is
// in a thousand names: a hostile log of some megabytes could ask for terabytes.
const (
	maxBuilt  = 4 << 30
	maxStored = 256 << 20
	joinCost  = 32 // bytes that a part of a name counts for beyond its length
)

var errTooLong = errors.New("the names of its tests would be too long")

// join records a test under a name made of parts.
func (t *Tests) join(s Status, sep string, parts ...string) error {
	name, err := t.build(sep, parts)
	if err != nil {
		return err
	}
	return t.setBuilt(name, s)
}

// build makes a name, within bounds.
func (t *Tests) build(sep string, parts []string) (string, error) {
	for _, p := range parts {
		t.built += joinCost + len(p) + len(sep)
	}
	if t.built > maxBuilt {
		return "", errTooLong
	}
	return strings.Join(parts, sep), nil
}

// setBuilt records a test under a name that build made.
func (t *Tests) setBuilt(name string, s Status) error {
	if _, seen := t.places[name]; !seen && !t.passesOver(name) {
		if t.stored += len(name); t.stored > maxStored {
			return errTooLong
		}
	}
	t.Set(name, s)
	return nil
}

// Get returns the status of a test; the second value says whether it was seen.
func (t *Tests) Get(name string) (Status, bool) {
	i, ok := t.places[name]
	if !ok {
		return "", false
	}
	return t.entries[i].status, true
}

// Len is how many tests there are.
func (t *Tests) Len() int { return len(t.entries) }

// Any says that a test was seen, be it one that was not kept.
func (t *Tests) Any() bool { return len(t.entries) > 0 || t.others != nil && t.others.seen }

// AnyFailed says that a test ended as Failed or as Error, be it one that was
// not kept.
func (t *Tests) AnyFailed() bool {
	failing := func(e entry) bool { return failed(e.status) }
	return slices.ContainsFunc(t.entries, failing) || t.others != nil && len(t.others.failing) > 0
}

func failed(s Status) bool { return s == Failed || s == Error }

// All are the tests and their statuses in order.
func (t *Tests) All() iter.Seq2[string, Status] {
	return func(yield func(string, Status) bool) {
		for _, e := range t.entries {
			if !yield(e.name, e.status) {
				return
			}
		}
	}
}

// others are the tests that nobody wants: of a million of them, only those that
// fail leave a trace.
type others struct {
	wanted  func(name string) bool
	seen    bool
	seed    maphash.Seed
	failing map[uint64]struct{} // hashes of names
}

func newOthers(wanted func(name string) bool) *others {
	return &others{wanted: wanted, seed: maphash.MakeSeed(), failing: map[uint64]struct{}{}}
}

// passesOver says that a test is not to be kept.
func (t *Tests) passesOver(name string) bool {
	if t.others == nil {
		return false
	}
	_, kept := t.places[name]
	return !kept && !t.others.wanted(name)
}

// set records what became of one of them, for now.
func (o *others) set(name string, s Status) {
	o.seen = true
	if failed(s) {
		o.failing[maphash.String(o.seed, name)] = struct{}{}
		return
	}
	o.forget(name)
}

// forget drops one that no longer fails, or is kept from now on.
func (o *others) forget(name string) {
	if len(o.failing) > 0 {
		delete(o.failing, maphash.String(o.seed, name))
	}
}
