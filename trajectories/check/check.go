// Package check holds trajectories against the rules of their formats: the
// journals of mini, the .traj.json of mini-swe-agent, and the interchange format
// (trajectories/atif). It says which field is wrong, and why; it mends nothing,
// and bounds what it reads: whoever wrote a file may mean harm.
//
//	report := check.File("runs/first/a/attempts/1/journal.jsonl", check.Options{})
//	for _, p := range report.Problems { fmt.Println(p) }
package check

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/trajectories/atif"
	"github.com/minibench/mini/trajectories/formats/schema"
)

// Problem is something in a file that is against the rules, or worth a note.
type Problem struct {
	Line   int    `json:"line,omitempty"` // of a journal, from 1 on
	Path   string `json:"path,omitempty"` // the field, as "data.usage.prompt_tokens"
	Reason string `json:"reason"`
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Reason
	}
	return p.Path + ": " + p.Reason
}

// Report is what there is to say of a file.
type Report struct {
	// Format is as the file names it; empty where it is none that is known.
	Format   string    `json:"format,omitempty"`
	Problems []Problem `json:"problems"`
	// Notes are no problems: a last line that was torn, an attempt that has not
	// ended, records of a type that is not known.
	Notes []Problem `json:"notes,omitempty"`
	full  bool      // a thousand are named, and that there are more
}

// Options are for files that have editions.
type Options struct {
	// ATIF is the edition of the interchange format; 0 is the newest.
	ATIF atif.Edition
}

// maxProblems are named of a file; the rest of it is not looked at.
const maxProblems = 1000

// maxDocument bounds files that have to be read whole, in bytes.
const maxDocument = atif.MaxSize

func (r *Report) problem(line int, path, format string, args ...any) {
	switch {
	case len(r.Problems) < maxProblems:
		r.Problems = append(r.Problems, Problem{line, path, fmt.Sprintf(format, args...)})
	case !r.full:
		r.full = true
		r.Problems = append(r.Problems, Problem{Reason: fmt.Sprintf("more than %d problems; the rest is not named", maxProblems)})
	}
}

func (r *Report) note(line int, path, format string, args ...any) {
	if len(r.Notes) < maxProblems {
		r.Notes = append(r.Notes, Problem{line, path, fmt.Sprintf(format, args...)})
	}
}

// File checks a file. That it cannot be read is a problem of it.
func File(path string, o Options) *Report {
	failed := func(err error) *Report { return &Report{Problems: []Problem{{Reason: reason(err)}}} }
	info, err := os.Stat(path)
	if err != nil {
		return failed(err)
	}
	if !info.Mode().IsRegular() {
		return failed(errors.New("this is no regular file"))
	}
	f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return failed(err)
	}
	defer func() { _ = f.Close() }()
	return Reader(filepath.Base(path), f, o)
}

// reason is an error without the name of the file, which stands before it.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}

// Reader is File for bytes that come from elsewhere. The name says what is
// expected where the bytes do not.
func Reader(name string, r io.Reader, o Options) *Report {
	in := bufio.NewReaderSize(r, peek)
	head, err := in.Peek(peek)
	if err != nil && len(head) == 0 && !errors.Is(err, io.EOF) {
		return &Report{Problems: []Problem{{Reason: reason(err)}}}
	}
	switch k := KindOf(name, head); {
	case len(head) == 0:
		return &Report{Problems: []Problem{{Reason: "the file is empty"}}}
	case k == Journal:
		return checkJournal(in)
	}
	data, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	report := &Report{}
	switch {
	case err != nil:
		report.problem(0, "", "%s", reason(err))
		return report
	case len(data) > maxDocument:
		report.problem(0, "", "more than %d bytes, which is too large to be looked at", maxDocument)
		return report
	}
	report.document(name, bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), o)
	return report
}

// Kind is a family of formats.
type Kind string

// The kinds of files.
const (
	Journal  Kind = "journal"  // of mini
	Traj     Kind = "traj"     // of mini-swe-agent
	ATIF     Kind = "atif"     // the interchange format
	Messages Kind = "messages" // a bare list of them
	Unknown  Kind = ""
)

// peek is how much of a file tells its kind.
const peek = 64 << 10

// KindOf tells the kind of a file from its name and its beginning. Unknown is
// one that has to be read to be known, or that is none.
func KindOf(name string, head []byte) Kind {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	line, _, _ := bytes.Cut(head, []byte("\n"))
	var first struct {
		ID   *json.RawMessage `json:"id"`
		Type *json.RawMessage `json:"type"`
		Data *json.RawMessage `json:"data"`
	}
	record := json.Unmarshal(line, &first) == nil && first.ID != nil && first.Type != nil && first.Data != nil
	switch {
	case record, name == "journal.jsonl", bytes.HasPrefix(head, []byte(`{"id":1,"parent_id":0,"type":"header"`)):
		return Journal
	case bytes.Contains(head, []byte(`"ATIF-v`)):
		return ATIF
	case bytes.Contains(head, []byte(`"trajectory_format"`)), strings.HasSuffix(name, ".traj.json"):
		return Traj
	}
	return Unknown
}

// document checks what is one JSON document.
func (r *Report) document(name string, data []byte, o Options) {
	var root map[string]json.RawMessage
	err := json.Unmarshal(data, &root)
	has := func(name string) bool { return root[name] != nil }
	version := root["schema_version"]
	kind := Unknown
	switch {
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")):
		kind = Messages
	case has("schema_version") && string(version) != "null", has("steps") && has("agent"):
		kind = ATIF
	case has("trajectory_format"), has("messages"):
		kind = Traj
	case err != nil:
		kind = KindOf(name, data[:min(len(data), peek)])
	}
	switch kind {
	case ATIF:
		r.atif(version, data, o.ATIF)
	case Traj, Messages:
		r.traj(data)
	default:
		if err != nil {
			r.problem(0, "", "not JSON: %s", schema.SyntaxError(data))
			return
		}
		r.problem(0, "", "not a trajectory that is known: no journal, no .traj.json of mini-swe-agent, no ATIF")
	}
}

func (r *Report) atif(schema json.RawMessage, data []byte, e atif.Edition) {
	r.Format = "ATIF"
	var version string
	if json.Unmarshal(schema, &version) == nil && version != "" && len(version) < 20 {
		r.Format = version
	}
	for _, p := range atif.Check(data, cmp.Or(e, atif.Newest)) {
		r.problem(0, p.Path, "%s", p.Reason)
	}
}
