package atif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories/formats/schema"
)

// Problem is a violation of the specification.
type Problem struct {
	// Path is the path of the field, such as "trajectory.steps.0.message".
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func (p Problem) String() string { return p.Path + ": " + p.Reason }

// SpecVersion is a minor version of the specification. Its rules apply to every document,
// whatever version the document declares. Newer specifications accept newer documents and
// have stricter rules.
type SpecVersion int

// The versions of the specification.
const (
	Spec17 SpecVersion = 7 // up to ATIF-v1.7
	// Spec18 allows audio. Tool call IDs must be unique in a step, and a reference
	// without a path must refer to an embedded trajectory.
	Spec18     SpecVersion = 8
	LatestSpec             = Spec18
)

// MaxSize bounds a document, in bytes. Reading needs several times as much memory.
const MaxSize = 128 << 20

// Limits of a document. The limits of embedded trajectories bound the use of memory, since
// the reader holds each level in memory while it reads the levels below.
const (
	maxProblems    = 1000    // reported problems, without the last, which says that there are more
	maxNesting     = 32      // levels of trajectories, including the document
	maxNestedBytes = MaxSize // total size of embedded trajectories
)

// Check validates a document. It checks each field, and the relations between the fields
// of objects whose fields are valid. Like the reference implementation, it accepts "1" and
// 1.0 as integers and "true" as a boolean, but not a number as a string.
func Check(data []byte, spec SpecVersion) []Problem {
	r := reader{spec: spec}
	r.document(data)
	return r.problems
}

// reader decodes a document and collects problems.
type reader struct {
	*schema.Reader
	spec SpecVersion
	// lenient accepts all versions 1.x, unknown fields of newer versions, references
	// in the form before 1.7 or to missing trajectories, and duplicate tool call IDs.
	lenient     bool
	notes       []string // about unusual versions and fields that were accepted
	newer       bool     // the version of the document is newer than spec
	nestedBytes int      // total size of embedded trajectories so far
	problems    []Problem
}

func (r *reader) problem(path, reason string) {
	switch n := len(r.problems); {
	case n < maxProblems:
		r.problems = append(r.problems, Problem{path, reason})
	case n == maxProblems:
		r.problems = append(r.problems, Problem{"trajectory", fmt.Sprintf("more than %d problems; the rest is not listed", maxProblems)})
	}
}

// allowUnknown implements schema.Reader.AllowUnknown.
func (r *reader) allowUnknown(path string) bool {
	if r.lenient && r.newer {
		r.notes = append(r.notes, fmt.Sprintf("%.200q is unknown and was ignored", path))
		return true
	}
	r.problem(path, "unexpected field (not part of ATIF schema)")
	return false
}

// document decodes and checks a document. It returns nil if data is too large, not UTF-8 or
// not JSON.
func (r *reader) document(data []byte) *Trajectory {
	r.Reader = schema.New("trajectory", r.problem)
	r.Lenient, r.AllowUnknown = true, r.allowUnknown
	r.Formats = map[string]func(string) string{"version": r.version, "time": timestampReason}
	r.TypeReaders = map[reflect.Type]func(json.RawMessage, reflect.Value) bool{
		reflect.TypeFor[Content]():    r.content,
		reflect.TypeFor[Trajectory](): withRules(r, r.trajectory),
		reflect.TypeFor[Step]():       withRules(r, r.step),
		reflect.TypeFor[Part]():       withRules(r, r.part),
		reflect.TypeFor[Ref]():        withRules(r, r.ref),
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	switch {
	case len(data) > MaxSize:
		r.Report("%d bytes, more than %d", len(data), MaxSize)
	case !utf8.Valid(data):
		r.Report("not UTF-8")
	case !json.Valid(data):
		r.Report("not JSON: %s", schema.SyntaxError(data))
	default:
		t := &Trajectory{}
		r.Read(data, t)
		return t
	}
	return nil
}

// withRules returns a type reader for schema.Reader that decodes an object and, if all
// fields are valid, applies rules.
func withRules[T any](r *reader, rules func(*T)) func(json.RawMessage, reflect.Value) bool {
	return func(raw json.RawMessage, v reflect.Value) bool {
		problemsBefore := len(r.problems)
		if _, ok := v.Interface().(Trajectory); ok && !r.checkNesting(raw) {
			return false
		}
		r.Struct(raw, v)
		if len(r.problems) == problemsBefore {
			rules(v.Addr().Interface().(*T)) //nolint:errcheck // the reader is registered for this type
		}
		return len(r.problems) == problemsBefore
	}
}

// checkNesting checks the depth and the size of embedded trajectories, of which raw is one
// unless it is the document.
func (r *reader) checkNesting(raw json.RawMessage) bool {
	switch depth := r.Depth("subagent_trajectories"); {
	case depth == maxNesting:
		return r.Report("embedded trajectories more than %d levels deep", maxNesting)
	case depth > 0:
		if r.nestedBytes += len(raw); r.nestedBytes > maxNestedBytes {
			return r.Report("embedded trajectories are too large to check")
		}
	}
	return true
}

// problemAt reports a problem at key within the current value.
func (r *reader) problemAt(key, format string, args ...any) {
	r.Within(key, func() { r.Report(format, args...) })
}
