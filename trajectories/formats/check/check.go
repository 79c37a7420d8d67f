// Package check validates trajectory files: journals of mini, .traj.json files of
// mini-swe-agent, and ATIF documents (package atif). It reports invalid fields with a
// reason, and does not change files. It bounds the use of memory, since files may be
// malicious.
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
	"path/filepath"
	"strings"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/trajectories/formats/atif"
	"github.com/minibench/mini/trajectories/formats/schema"
)

// Problem is an error in a file, or a note about it.
type Problem struct {
	Line   int    `json:"line,omitempty"` // line of a journal, from 1; 0 if the problem concerns no line
	Path   string `json:"path,omitempty"` // path of a field, such as "data.usage.prompt_tokens"; may be empty
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
	// Format is the name of the format in the file, or mini's name for it; empty if
	// unknown.
	Format   string    `json:"format,omitempty"`
	Problems []Problem `json:"problems"`
	// Notes describe what is unusual but valid, such as an incomplete last line, an
	// attempt that has not ended, and records of unknown types.
	Notes     []Problem `json:"notes,omitempty"`
	truncated bool      // there are more than maxProblems problems
}

// Options select the version of a specification.
type Options struct {
	// ATIF is the version of ATIF; 0 means the latest.
	ATIF atif.SpecVersion
}

// maxProblems bounds the notes about a file, and the problems without the last, which says
// that there are more.
const maxProblems = 1000

// maxDocument bounds a file that is one JSON document, in bytes.
const maxDocument = atif.MaxSize

// problem adds a problem. line may be 0, and path may be empty.
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

// File checks the file at path. If it cannot be read, the report has this problem only.
func File(path string, o Options) *Report {
	failed := func(err error) *Report { return &Report{Problems: []Problem{{Reason: reason(err)}}} }
	f, err := rootdir.OpenRegular(path, 0)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = f.Close() }()
	return Read(filepath.Base(path), f, o)
}

// reason returns the message of an error without the file name, which the caller of File
// prints.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}

// Read is File for an io.Reader. name is the file name; Read uses it to detect the format
// if the content is ambiguous.
func Read(name string, r io.Reader, o Options) *Report {
	in := bufio.NewReaderSize(r, headSize)
	head, err := in.Peek(headSize)
	if err != nil && len(head) == 0 && !errors.Is(err, io.EOF) {
		return &Report{Problems: []Problem{{Reason: reason(err)}}}
	}
	switch kind := DetectKind(name, head); {
	case len(head) == 0:
		return &Report{Problems: []Problem{{Reason: "the file is empty"}}}
	case kind == Journal:
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

// Kind is a group of formats that are checked in the same way.
type Kind string

// The kinds of files.
const (
	Journal  Kind = "journal"  // journal of mini
	Traj     Kind = "traj"     // .traj.json of mini-swe-agent
	ATIF     Kind = "atif"     // Agent Trajectory Interchange Format
	Messages Kind = "messages" // a list of messages
	Unknown  Kind = ""
)

// headSize is the size of the first part of a file for DetectKind, in bytes.
const headSize = 64 << 10

// DetectKind detects the kind of a file from its name and its first bytes. It returns Unknown
// if they are not sufficient, or if the file is not a trajectory.
func DetectKind(name string, head []byte) Kind {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	line, _, _ := bytes.Cut(head, []byte("\n"))
	var record struct {
		ID   *json.RawMessage `json:"id"`
		Type *json.RawMessage `json:"type"`
		Data *json.RawMessage `json:"data"`
	}
	isRecord := json.Unmarshal(line, &record) == nil && record.ID != nil && record.Type != nil && record.Data != nil
	switch {
	case isRecord, name == "journal.jsonl", bytes.HasPrefix(head, []byte(`{"id":1,"parent_id":0,"type":"header"`)):
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
		kind = DetectKind(name, data[:min(len(data), headSize)])
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

// atif checks an ATIF document, whose schema_version is schemaVersion.
func (r *Report) atif(schemaVersion json.RawMessage, data []byte, spec atif.SpecVersion) {
	r.Format = "ATIF"
	var version string
	if json.Unmarshal(schemaVersion, &version) == nil && version != "" && len(version) < 20 {
		r.Format = version
	}
	for _, p := range atif.Check(data, cmp.Or(spec, atif.LatestSpec)) {
		r.problem(0, p.Path, "%s", p.Reason)
	}
}
