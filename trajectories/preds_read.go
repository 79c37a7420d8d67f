package trajectories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/rootdir"
)

// MaxPatchBytes bounds the patch of a prediction, in bytes.
const MaxPatchBytes = 100 << 20

// maxPatch is MaxPatchBytes. Tests reduce it, since a patch of that size takes minutes.
var maxPatch = MaxPatchBytes

// Predictions is the content of a predictions file.
type Predictions struct {
	// List has one prediction per instance ID, in the order of the first predictions
	// for the IDs. Among several predictions for an ID the last one counts, as in the
	// SWE-bench harness.
	List []Prediction
	// Warnings describe unusual input that was accepted. Each contains a line number.
	Warnings []string
}

// ByID returns the predictions by instance ID.
func (p Predictions) ByID() map[string]Prediction {
	m := make(map[string]Prediction, len(p.List))
	for _, pred := range p.List {
		m[pred.InstanceID] = pred
	}
	return m
}

// ReadPredictions reads a predictions file, which must be a regular file. The file is an object that maps instance
// IDs to predictions, a list of predictions, or JSON lines. ReadPredictions does not
// check IDs against a dataset. Errors name the file and, if they concern a part of it, the
// line. ReadPredictions fails for files over 512 MiB, patches over MaxPatchBytes, and
// predictions for more than a million instances.
func ReadPredictions(path string) (Predictions, error) {
	return readPredictions(rootdir.OpenRegular(path, 0))
}

// ReadPipedPredictions is ReadPredictions for a file or pipe that the user has named. It
// fails for a pipe that has no writer or no data; O_NONBLOCK avoids waiting for a writer.
func ReadPipedPredictions(path string) (Predictions, error) {
	return readPredictions(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)) //nolint:gosec // G304: reading the named file is the purpose
}

func readPredictions(f *os.File, err error) (Predictions, error) {
	if err != nil {
		return Predictions{}, fmt.Errorf("read predictions: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := readPipeOrFile(f)
	if err != nil {
		return Predictions{}, fmt.Errorf("read predictions: %w", err)
	}
	return ParsePredictions(f.Name(), data)
}

// readPipeOrFile reads a file of at most maxFile bytes, or as much and one byte of a pipe.
func readPipeOrFile(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	refuse := func(reason string) error { return &fs.PathError{Op: "read", Path: f.Name(), Err: errors.New(reason)} }
	isPipe := info.Mode()&fs.ModeNamedPipe != 0
	switch {
	case !info.Mode().IsRegular() && !isPipe:
		return nil, refuse("neither a file nor a pipe")
	case info.Size() > maxFile:
		return nil, refuse(fmt.Sprintf("more than %d bytes", maxFile))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && isPipe && len(data) == 0 {
		err = refuse("pipe is empty")
	}
	return data, err
}

// ParsePredictions is ReadPredictions for data in memory. Errors contain name.
func ParsePredictions(name string, data []byte) (Predictions, error) {
	if len(data) > maxFile {
		return Predictions{}, fmt.Errorf("read predictions %s: more than %d bytes", name, maxFile)
	}
	if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		return Predictions{}, fmt.Errorf("read predictions %s: file is compressed; decompress it with gunzip", name)
	}
	r := predReader{data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), index: map[string]int{}, offset: map[string]int64{}}
	if err := r.readAll(); err != nil {
		return Predictions{}, fmt.Errorf("read predictions %s: %w", name, err)
	}
	return r.result, nil
}

// predReader reads predictions. Offsets are byte offsets in data; error messages have
// line numbers instead.
type predReader struct {
	data   []byte
	dec    *json.Decoder
	result Predictions
	index  map[string]int   // instance ID -> index in result.List
	offset map[string]int64 // instance ID -> offset of its newest prediction
}

// readAll reads all values of the file.
func (r *predReader) readAll() error {
	n := 0
	for line := range bytes.Lines(r.data) {
		if n++; !utf8.Valid(line) {
			return fmt.Errorf("line %d: not UTF-8", n)
		}
	}
	r.dec = json.NewDecoder(bytes.NewReader(r.data))
	for {
		offset := r.nextOffset("")
		if offset == int64(len(r.data)) {
			return nil
		}
		err := r.readValue(offset)
		if err == nil {
			continue
		}
		if _, hasLine := errors.AsType[*lineError](err); hasLine {
			return err
		}
		// For a syntax error, Unmarshal reports the offset, but the decoder does not.
		if s, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(r.data[offset:], new(json.RawMessage))); ok {
			return r.errorAt(offset+max(0, s.Offset-1), "%w", s)
		}
		return r.errorAt(offset, "%w", err)
	}
}

// nextOffset returns the offset of the next token. It skips white space and the given
// separators.
func (r *predReader) nextOffset(separators string) int64 {
	return int64(len(r.data) - len(bytes.TrimLeft(r.data[r.dec.InputOffset():], " \t\r\n"+separators)))
}

// lineError is an error with a line number.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }

// Unwrap returns the error without the line number.
func (e *lineError) Unwrap() error { return e.err }

func (r *predReader) errorAt(offset int64, format string, args ...any) error {
	return &lineError{r.lineAt(offset), fmt.Errorf(format, args...)}
}

func (r *predReader) lineAt(offset int64) int { return 1 + bytes.Count(r.data[:offset], []byte("\n")) }

// readValue reads the value at offset: a prediction, a list, or an object of
// predictions.
func (r *predReader) readValue(offset int64) error {
	token, err := r.dec.Token()
	switch {
	case err != nil:
		return err
	case token == json.Delim('['):
		for r.dec.More() {
			elementOffset := r.nextOffset(",")
			var raw json.RawMessage
			if err := r.dec.Decode(&raw); err != nil {
				return err
			}
			if err := r.add("", raw, elementOffset); err != nil {
				return err
			}
		}
		_, err := r.dec.Token()
		return err
	case token == json.Delim('{'):
		return r.readObject(offset)
	}
	return r.errorAt(offset, "an object or a list of predictions expected, got %s", JSONKind(r.data[offset:]))
}

// readObject reads the object at offset: a prediction, or an object that maps instance
// IDs to predictions.
func (r *predReader) readObject(offset int64) error {
	type member struct {
		key    string
		raw    json.RawMessage
		offset int64
	}
	var members []member
	isPrediction, objectCount := false, 0
	for r.dec.More() {
		key, err := r.dec.Token()
		if err != nil {
			return err
		}
		m := member{key: key.(string), offset: r.nextOffset(":")} //nolint:errcheck,forcetypeassert // a key is a string
		if err := r.dec.Decode(&m.raw); err != nil {
			return err
		}
		isPrediction = isPrediction || m.key == "instance_id"
		if JSONKind(m.raw) == "an object" {
			objectCount++
		}
		members = append(members, m)
	}
	if _, err := r.dec.Token(); err != nil {
		return err
	}
	if isPrediction {
		return r.add("", r.data[offset:r.dec.InputOffset()], offset)
	}
	if objectCount == 0 && len(members) > 0 {
		return r.errorAt(offset, "instance_id is missing")
	}
	for _, m := range members {
		if err := r.add(m.key, m.raw, m.offset); err != nil {
			return err
		}
	}
	return nil
}

// add decodes one prediction, which is at offset, and adds it. key is its key in an
// object of predictions; empty in a list.
func (r *predReader) add(key string, raw json.RawMessage, offset int64) error {
	p, err := readPrediction(raw)
	switch {
	case err != nil:
		return r.errorAt(offset, "%w", err)
	case p.InstanceID == "" && key == "":
		return r.errorAt(offset, "instance_id is missing or empty")
	case p.InstanceID == "":
		p.InstanceID = key
	case key != "" && key != p.InstanceID:
		// The SWE-bench harness ignores the keys.
		r.warn(offset, "the prediction under %.100q has the instance_id %.100q, which is used", key, p.InstanceID)
	}
	index, exists := r.index[p.InstanceID]
	if exists {
		r.warn(offset, "%.100q is predicted again; this prediction replaces the one in line %d", p.InstanceID, r.lineAt(r.offset[p.InstanceID]))
		r.result.List[index] = p
	} else {
		if len(r.result.List) == maxPredictions {
			return r.errorAt(offset, "more than %d predictions", maxPredictions)
		}
		r.index[p.InstanceID] = len(r.result.List)
		r.result.List = append(r.result.List, p)
	}
	r.offset[p.InstanceID] = offset
	return nil
}

// maxPredictions bounds memory use: the shortest predictions need far more bytes in
// memory than in the file, so maxFile alone is not enough.
const maxPredictions = 1_000_000

// maxWarnings bounds the warnings of one file, without the last, which says that there are
// more.
const maxWarnings = 100

func (r *predReader) warn(offset int64, format string, args ...any) {
	switch n := len(r.result.Warnings); {
	case n < maxWarnings:
		r.result.Warnings = append(r.result.Warnings, r.errorAt(offset, format, args...).Error())
	case n == maxWarnings:
		r.result.Warnings = append(r.result.Warnings, r.errorAt(offset, "further warnings are not shown").Error())
	}
}

func readPrediction(raw json.RawMessage) (Prediction, error) {
	if kind := JSONKind(raw); kind != "an object" {
		return Prediction{}, fmt.Errorf("a prediction must be an object, got %s", kind)
	}
	var p Prediction
	var fields map[string]json.RawMessage // as in Python, names must match exactly and the last duplicate counts
	if err := json.Unmarshal(raw, &fields); err != nil {
		return p, err
	}
	for _, field := range []struct {
		name string
		into *string
	}{{"instance_id", &p.InstanceID}, {"model_name_or_path", &p.Model}, {"model_patch", &p.Patch}} {
		name, dest := field.name, field.into
		raw, kind := fields[name], JSONKind(fields[name])
		if kind == "nothing" && dest == &p.Patch {
			return p, missingPatchError(fields)
		}
		if kind == "nothing" || kind == "null" {
			p.IsNull = p.IsNull || dest == &p.Patch
			continue
		}
		if kind != "a string" {
			return p, fmt.Errorf("%s: a string expected, got %s", name, kind)
		}
		if err := json.Unmarshal(raw, dest); err != nil {
			return p, fmt.Errorf("%s: %w", name, err)
		}
		// Unmarshal replaces half of a surrogate pair by U+FFFD, which would change the
		// patch.
		const replacement = "\ufffd"
		if inFile := bytes.Count(raw, []byte(replacement)) + bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`)); strings.Count(*dest, replacement) > inFile {
			return p, fmt.Errorf("%s: half of a surrogate pair is not valid text", name)
		}
	}
	if len(p.Patch) > maxPatch {
		return p, fmt.Errorf("model_patch: more than %d bytes", maxPatch)
	}
	return p, nil
}

// missingPatchError returns the error of a prediction without model_patch. It names the
// key that may have the patch: one with a diff, or else one that speaks of a patch.
func missingPatchError(fields map[string]json.RawMessage) error {
	best, score := "", 0
	var visit func(prefix string, fields map[string]json.RawMessage)
	visit = func(prefix string, fields map[string]json.RawMessage) {
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			var text string
			var inner map[string]json.RawMessage
			n, lower := 0, strings.ToLower(key)
			if json.Unmarshal(fields[key], &text) == nil && diffStart.MatchString(text) {
				n = 2
			}
			if strings.Contains(lower, "patch") || strings.Contains(lower, "predict") || strings.Contains(lower, "diff") {
				n++
			}
			if n > score {
				best, score = prefix+key, n
			}
			if prefix == "" && json.Unmarshal(fields[key], &inner) == nil {
				visit(key+".", inner)
			}
		}
	}
	visit("", fields)
	if best == "" {
		return errors.New(`model_patch is missing; for an empty patch write "model_patch": null`)
	}
	return fmt.Errorf("model_patch is missing (did you mean %.100q?)", best)
}

var diffStart = lazyregexp.New(`^(diff --git |--- )`)
