package logs

import (
	"errors"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
)

// Tests maps test names to statuses, in the order in which the tests were first set. Setting a
// test again changes its status, but not its position. The zero value is ready to use. Tests
// has no reference to the parsed text, so that the text can be freed.
type Tests struct {
	entries     []entry
	indexes     map[string]int // index of each name in entries
	builtBytes  int            // size of all names that build has joined
	storedBytes int            // size of the joined names that are stored
	others      *otherTests    // tests that are not stored; nil if all tests are stored
	overwritten string
}

type entry struct {
	name   string
	status Status
}

// Set sets the status of a test.
func (t *Tests) Set(name string, s Status) {
	if t.isSkipped(name) {
		t.others.set(name, s)
		return
	}
	e := &t.entries[t.index(name)]
	if s == Passed && isFailure(e.status) && !isDescription(name) {
		t.overwritten = e.name
	}
	e.status = s.detached()
}

// Overwritten returns the name of a stored test that was set to Failed or Error and then to
// Passed, or "". It leaves out names that are descriptions.
func (t *Tests) Overwritten() string { return t.overwritten }

// isDescription reports whether a name is a text that several tests may share, such as the first
// line of a docstring.
func isDescription(name string) bool {
	return strings.Contains(name, " ") && !strings.HasSuffix(name, ")")
}

// index returns the index of a test in entries. It appends an unknown test; the caller then sets
// the status.
func (t *Tests) index(name string) int {
	if i, seen := t.indexes[name]; seen {
		return i
	}
	if t.indexes == nil {
		t.indexes = map[string]int{}
	}
	if t.others != nil {
		t.others.forget(name)
	}
	name = strings.Clone(name) // do not keep the whole log in memory
	t.entries = append(t.entries, entry{name: name})
	t.indexes[name] = len(t.entries) - 1
	return len(t.entries) - 1
}

// detached returns a copy of the status that does not refer to the log's memory.
func (s Status) detached() Status {
	for _, known := range statuses {
		if s == known {
			return known
		}
	}
	return Status(strings.Clone(string(s)))
}

// Limits for names joined from headings, in bytes. A heading is part of the names of all tests
// below it, so that a malicious log of a few megabytes could need terabytes.
const (
	maxBuilt  = 4 << 30
	maxStored = 256 << 20
	joinCost  = 32 // overhead of a name part, in bytes
)

var errTooLong = errors.New("the test names are too long")

// join sets the status of a test whose name is joined from parts.
func (t *Tests) join(s Status, sep string, parts ...string) error {
	name, err := t.build(sep, parts)
	if err != nil {
		return err
	}
	return t.setBuilt(name, s)
}

// build joins the parts of a name. It returns errTooLong if all names together exceed maxBuilt.
func (t *Tests) build(sep string, parts []string) (string, error) {
	for _, p := range parts {
		t.builtBytes += joinCost + len(p) + len(sep)
	}
	if t.builtBytes > maxBuilt {
		return "", errTooLong
	}
	return strings.Join(parts, sep), nil
}

// setBuilt sets the status of a test; build must have joined the name. It returns errTooLong if
// all stored names together exceed maxStored.
func (t *Tests) setBuilt(name string, s Status) error {
	if _, seen := t.indexes[name]; !seen && !t.isSkipped(name) {
		if t.storedBytes += len(name); t.storedBytes > maxStored {
			return errTooLong
		}
	}
	t.Set(name, s)
	return nil
}

// Get returns the status of a test, or false if the log does not have the test.
func (t *Tests) Get(name string) (Status, bool) {
	i, ok := t.indexes[name]
	if !ok {
		return "", false
	}
	return t.entries[i].status, true
}

// Len returns the number of stored tests.
func (t *Tests) Len() int { return len(t.entries) }

// Any reports whether the log has a test, including tests that are not stored.
func (t *Tests) Any() bool { return len(t.entries) > 0 || t.others != nil && t.others.seen }

// AnyFailed reports whether a test has the status Failed or Error, including tests that are not
// stored.
func (t *Tests) AnyFailed() bool {
	failing := func(e entry) bool { return isFailure(e.status) }
	return slices.ContainsFunc(t.entries, failing) || t.others != nil && len(t.others.failing) > 0
}

func isFailure(s Status) bool { return s == Failed || s == Error }

// All returns the tests and their statuses in order.
func (t *Tests) All() iter.Seq2[string, Status] {
	return func(yield func(string, Status) bool) {
		for _, e := range t.entries {
			if !yield(e.name, e.status) {
				return
			}
		}
	}
}

// otherTests tracks the tests that ParseOnly does not store. It stores only hashes of the failing
// ones.
type otherTests struct {
	isWanted func(name string) bool
	seen     bool // whether the log has such a test
	seed     maphash.Seed
	failing  map[uint64]struct{} // hashes of names
}

func newOthers(wanted func(name string) bool) *otherTests {
	return &otherTests{isWanted: wanted, seed: maphash.MakeSeed(), failing: map[uint64]struct{}{}}
}

// isSkipped reports whether a test is not stored.
func (t *Tests) isSkipped(name string) bool {
	if t.others == nil {
		return false
	}
	_, kept := t.indexes[name]
	return !kept && !t.others.isWanted(name)
}

// set records the status of a test that is not stored.
func (o *otherTests) set(name string, s Status) {
	o.seen = true
	if isFailure(s) {
		o.failing[maphash.String(o.seed, name)] = struct{}{}
		return
	}
	o.forget(name)
}

// forget removes a test that no longer fails, or is now stored.
func (o *otherTests) forget(name string) {
	if len(o.failing) > 0 {
		delete(o.failing, maphash.String(o.seed, name))
	}
}
