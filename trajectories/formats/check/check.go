// Package check validates trajectory files: mini's journals, the .traj.json of
// mini-swe-agent, and ATIF (package atif). It reports invalid fields with a reason,
// and does not change files. Memory use is bounded, since files may be malicious.
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

	"github.com/minibench/mini/trajectories/formats/atif"
	"github.com/minibench/mini/trajectories/formats/schema"
)

// Problem is an error or a note about a part of a file.
type Problem struct {
	Line   int    `json:"line,omitempty"` // of a journal, from 1
	Path   string `json:"path,omitempty"` // of the field, such as "data.usage.prompt_tokens"
	Reason string `json:"reason"`
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Reason
	}
	return p.Path + ": " + p.Reason
}

// Report is the result of checking a file.
type Report struct {
	// Format is as named in the file; empty if unknown.
	Format   string    `json:"format,omitempty"`
	Problems []Problem `json:"problems"`
	// Notes are not errors: an incomplete last line, an unfinished attempt, records
	// of unknown types.
	Notes     []Problem `json:"notes,omitempty"`
	truncated bool      // maxProblems was exceeded
}

// Options select the version of a specification.
type Options struct {
	// ATIF is the version of ATIF; 0 is the latest.
	ATIF atif.SpecVersion
}

// maxProblems bounds the problems reported for a file.
const maxProblems = 1000

// maxDocument bounds files that are read whole, in bytes.
const maxDocument = atif.MaxSize

func (r *Report) problem(line int, path, format string, args ...any) {
	switch {
	case len(r.Problems) < maxProblems:
		r.Problems = append(r.Problems, Problem{line, path, fmt.Sprintf(format, args...)})
	case !r.truncated:
		r.truncated = true
		r.Problems = append(r.Problems, Problem{Reason: fmt.Sprintf("more than %d problems; the rest is not listed", maxProblems)})
	}
}

func (r *Report) note(line int, path, format string, args ...any) {
	if len(r.Notes) < maxProblems {
		r.Notes = append(r.Notes, Problem{line, path, fmt.Sprintf(format, args...)})
	}
}

// File checks a file. If it cannot be read, that is the only problem of the report.
func File(path string, o Options) *Report {
	failed := func(err error) *Report { return &Report{Problems: []Problem{{Reason: reason(err)}}} }
	info, err := os.Stat(path)
	if err != nil {
		return failed(err)
	}
	if !info.Mode().IsRegular() {
		return failed(errors.New("not a regular file"))
	}
	f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return failed(err)
	}
	defer func() { _ = f.Close() }()
	return Read(filepath.Base(path), f, o)
}

// reason returns the message of an error without the file name, since the caller
// prints it.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}

// Read checks data from a reader. The name is used to detect the format if the
// content is ambiguous.
func Read(name string, r io.Reader, o Options) *Report {
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
		report.problem(0, "", "more than %d bytes, which is too large to check", maxDocument)
		return report
	}
	report.document(name, bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), o)
	return report
}

// Kind is a group of formats.
type Kind string

// The kinds of files.
const (
	Journal  Kind = "journal"  // of mini
	Traj     Kind = "traj"     // of mini-swe-agent
	ATIF     Kind = "atif"     // Agent Trajectory Interchange Format
	Messages Kind = "messages" // a list of messages
	Unknown  Kind = ""
)

// peek is the number of bytes from which the kind is detected.
const peek = 64 << 10

// KindOf detects the kind of a file from its name and first bytes. It returns Unknown
// if the whole file is needed, or if the file is not a trajectory.
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

// document checks a JSON document.
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
		r.problem(0, "", "unknown format: not a journal, a .traj.json of mini-swe-agent, or ATIF")
	}
}

func (r *Report) atif(schema json.RawMessage, data []byte, e atif.SpecVersion) {
	r.Format = "ATIF"
	var version string
	if json.Unmarshal(schema, &version) == nil && version != "" && len(version) < 20 {
		r.Format = version
	}
	for _, p := range atif.Check(data, cmp.Or(e, atif.LatestSpec)) {
		r.problem(0, p.Path, "%s", p.Reason)
	}
}
