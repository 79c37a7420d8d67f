package atif

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories"
)

// Problem is a breach of the rules.
type Problem struct {
	// Path is the field, as "trajectory.steps.0.message".
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func (p Problem) String() string { return p.Path + ": " + p.Reason }

// Edition is a state of the rules. Newer ones know newer versions, and forbid
// what older ones let pass, whatever version a document says it has.
type Edition int

// The editions.
const (
	Edition7 Edition = 7 // up to ATIF-v1.7
	// Edition8 has audio, wants the ids of a step's tool calls to be different,
	// and references without a path to name an embedded trajectory.
	Edition8 Edition = 8
	Newest           = Edition8
)

// MaxSize bounds a document, in bytes. Taking one apart needs several times as
// much memory.
const MaxSize = 128 << 20

// maxProblems are named of one document. Trajectories of agents of agents are
// bounded by maxNesting, and all together, one within the other, by maxNested
// bytes: each level is held while those within it are looked at.
const (
	maxProblems = 1000
	maxNesting  = 32
	maxNested   = MaxSize
)

// Check holds a document against the rules: first each field for itself, then,
// where all have the right types, what they say of each other. Like the
// reference, it takes "1" or 1.0 for a whole number and "true" for a truth
// value, but no number for a text.
func Check(data []byte, e Edition) []Problem {
	r := reader{audio: e >= Edition8, unique: e >= Edition8, resolve: e >= Edition8, newest: int(e)}
	r.document(data)
	return r.problems
}

// reader takes a document apart, and says what is wrong with it.
type reader struct {
	// What is allowed beside that on which all editions agree.
	audio, unique, resolve bool
	newest                 int // version 1.newest
	// lenient takes any 1.x, with fields it does not know where it is newer,
	// and references of before 1.7: notes says so.
	lenient bool
	notes   []string
	// newer is whether the document has a version after the newest known.
	newer    bool
	nested   int // bytes of trajectories within trajectories
	problems []Problem
}

// place is where a value stands.
type place struct {
	up  *place
	key string
}

func (p *place) in(key string) *place { return &place{p, key} }
func (p *place) at(i int) *place      { return &place{p, fmt.Sprint(i)} }

func (p *place) String() string {
	if p.up == nil {
		return p.key
	}
	return p.up.String() + "." + p.key
}

func (r *reader) wrong(at *place, format string, args ...any) {
	switch n := len(r.problems); {
	case n < maxProblems:
		r.problems = append(r.problems, Problem{at.String(), fmt.Sprintf(format, args...)})
	case n == maxProblems:
		r.problems = append(r.problems, Problem{"trajectory", fmt.Sprintf("more than %d problems; the rest is not named", maxProblems)})
	}
}

func (r *reader) document(data []byte) *Trajectory {
	root := &place{key: "trajectory"}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case len(data) > MaxSize:
		r.wrong(root, "%d bytes, allowed are %d", len(data), MaxSize)
		return nil
	case !utf8.Valid(data):
		r.wrong(root, "not UTF-8")
		return nil
	}
	if !json.Valid(data) {
		err := json.Unmarshal(data, new(json.RawMessage))
		r.wrong(root, "not JSON: %s", syntaxAt(data, err))
		return nil
	}
	return r.trajectory(bytes.TrimSpace(data), root, 0)
}

// syntaxAt says on which line a mistake is.
func syntaxAt(data []byte, err error) string {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(max(0, int(s.Offset)), len(data))
		return fmt.Sprintf("line %d: %v", 1+bytes.Count(data[:at], []byte("\n")), err)
	}
	return err.Error()
}

// object is a JSON object whose fields are taken one by one; what is left at
// the end nobody knows.
type object struct {
	r      *reader
	at     *place
	fields map[string]json.RawMessage
}

func (r *reader) object(v json.RawMessage, at *place) (object, bool) {
	o := object{r: r, at: at}
	if trajectories.KindOf(v) != "an object" {
		r.wrong(at, "an object is needed, this is %s", trajectories.KindOf(v))
		return o, false
	}
	if err := json.Unmarshal(v, &o.fields); err != nil {
		r.wrong(at, "%v", err)
		return o, false
	}
	return o, true
}

// done reports the fields that nobody took.
func (o object) done() {
	left := make([]string, 0, len(o.fields))
	for key := range o.fields {
		left = append(left, key)
	}
	slices.Sort(left)
	for _, key := range left {
		if o.r.lenient && o.r.newer {
			o.r.notes = append(o.r.notes, fmt.Sprintf("%.200q is not known and left out", o.at.in(key)))
			continue
		}
		o.r.wrong(o.at.in(clip(key)), "unexpected field (not part of ATIF schema)")
	}
}

// clip bounds and cleans a key of a stranger's.
func clip(key string) string {
	if len(key) > 80 || !plainKey.MatchString(key) {
		return fmt.Sprintf("%.80q", key)
	}
	return key
}

var plainKey = regexp.MustCompile(`^[\w$-]+$`)

// read makes a T of a value, or says what is wrong with it.
type read[T any] func(r *reader, v json.RawMessage, at *place) (T, bool)

// optional is nil where a field is missing, null or wrong.
func optional[T any](o object, key string, f read[T]) *T {
	v, ok := o.fields[key]
	delete(o.fields, key)
	if !ok || trajectories.KindOf(v) == "null" {
		return nil
	}
	t, ok := f(o.r, v, o.at.in(key))
	if !ok {
		return nil
	}
	return &t
}

// required is the zero value where a field is missing, or wrong.
func required[T any](o object, key string, f read[T]) T {
	v, ok := o.fields[key]
	delete(o.fields, key)
	if !ok {
		o.r.wrong(o.at.in(key), "required field is missing")
		var zero T
		return zero
	}
	t, _ := f(o.r, v, o.at.in(key))
	return t
}

// orEmpty is the list that p points to.
func orEmpty[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	return *p
}

// raw is the value that p points to.
func raw(p *json.RawMessage) json.RawMessage {
	if p == nil {
		return nil
	}
	return *p
}

// listOf reads each element; the list is wrong where one is, and not nil.
func listOf[T any](f read[T]) read[[]T] {
	return func(r *reader, v json.RawMessage, at *place) ([]T, bool) {
		if trajectories.KindOf(v) != "a list" {
			r.wrong(at, "a list is needed, this is %s", trajectories.KindOf(v))
			return nil, false
		}
		var elements []json.RawMessage
		if err := json.Unmarshal(v, &elements); err != nil {
			r.wrong(at, "%v", err)
			return nil, false
		}
		all, fine := make([]T, 0, len(elements)), true
		for i, e := range elements {
			t, ok := f(r, e, at.at(i))
			all, fine = append(all, t), fine && ok
		}
		return all, fine
	}
}
