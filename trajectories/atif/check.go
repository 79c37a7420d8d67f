package atif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories/formats/schema"
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
	r := reader{edition: e}
	r.document(data)
	return r.problems
}

// reader takes a document apart, and says what is wrong with it.
type reader struct {
	*schema.Reader
	edition Edition
	// lenient takes any 1.x, with fields it does not know where it is newer,
	// references of before 1.7 and to what is not embedded, and ids of tool calls
	// that are there twice: notes says so.
	lenient bool
	notes   []string
	// newer is whether the document has a version after the newest known.
	newer    bool
	nested   int // bytes of trajectories within trajectories
	problems []Problem
}

func (r *reader) problem(path, reason string) {
	switch n := len(r.problems); {
	case n < maxProblems:
		r.problems = append(r.problems, Problem{path, reason})
	case n == maxProblems:
		r.problems = append(r.problems, Problem{"trajectory", fmt.Sprintf("more than %d problems; the rest is not named", maxProblems)})
	}
}

func (r *reader) unknown(path string) bool {
	if r.lenient && r.newer {
		r.notes = append(r.notes, fmt.Sprintf("%.200q is not known and left out", path))
		return true
	}
	r.problem(path, "unexpected field (not part of ATIF schema)")
	return false
}

func (r *reader) document(data []byte) *Trajectory {
	r.Reader = schema.New("trajectory", r.problem)
	r.Lax, r.Unknown = true, r.unknown
	r.Formats = map[string]func(string) string{"version": r.version, "time": timestamp}
	r.Types = map[reflect.Type]func(json.RawMessage, reflect.Value) bool{
		reflect.TypeFor[Content]():    r.content,
		reflect.TypeFor[Trajectory](): ruled(r, r.trajectory),
		reflect.TypeFor[Step]():       ruled(r, r.step),
		reflect.TypeFor[Part]():       ruled(r, r.part),
		reflect.TypeFor[Ref]():        ruled(r, r.ref),
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	switch {
	case len(data) > MaxSize:
		r.Wrong("%d bytes, allowed are %d", len(data), MaxSize)
	case !utf8.Valid(data):
		r.Wrong("not UTF-8")
	case !json.Valid(data):
		r.Wrong("not JSON: %s", schema.SyntaxError(data))
	default:
		t := &Trajectory{}
		r.Read(data, t)
		return t
	}
	return nil
}

// ruled reads the fields of an object. Where all are right, it looks at what they
// say of each other.
func ruled[T any](r *reader, rules func(*T)) func(json.RawMessage, reflect.Value) bool {
	return func(raw json.RawMessage, v reflect.Value) bool {
		before := len(r.problems)
		if _, ok := v.Interface().(Trajectory); ok && !r.enter(raw) {
			return false
		}
		r.Struct(raw, v)
		if len(r.problems) == before {
			rules(v.Addr().Interface().(*T)) //nolint:errcheck // it is registered for this type
		}
		return len(r.problems) == before
	}
}

// enter bounds trajectories within trajectories.
func (r *reader) enter(raw json.RawMessage) bool {
	switch depth := r.Depth("subagent_trajectories"); {
	case depth == maxNesting:
		return r.Wrong("trajectories within trajectories, more than %d deep", maxNesting)
	case depth > 0:
		if r.nested += len(raw); r.nested > maxNested {
			return r.Wrong("trajectories within trajectories, too large to be looked at")
		}
	}
	return true
}

// breach reports a problem with a part of the current value.
func (r *reader) breach(key, format string, args ...any) {
	r.At(key, func() { r.Wrong(format, args...) })
}
