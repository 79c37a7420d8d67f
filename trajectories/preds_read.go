package trajectories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"
)

// MaxPatch bounds the patch of a prediction, in bytes.
const MaxPatch = 100 << 20

// maxPatch is MaxPatch, but in tests, for which so much text takes minutes.
var maxPatch = MaxPatch

// Predictions is what a file of predictions says.
type Predictions struct {
	// List has one prediction for each id, in the order in which ids first
	// appear. Where an id comes again, the last one counts, in the place of
	// the first: the official harness has it so.
	List []Prediction
	// Warnings are sentences about what was odd and read all the same; they
	// name the line.
	Warnings []string
}

// ByID are the predictions by instance id.
func (p Predictions) ByID() map[string]Prediction {
	m := make(map[string]Prediction, len(p.List))
	for _, one := range p.List {
		m[one.InstanceID] = one
	}
	return m
}

// ReadPredictions reads a file in any of the forms in use: an object of
// predictions, by id as a rule, a list, or one prediction a line. Whether a
// dataset has the ids is not asked. Errors name the file and the line. Files
// over 512 MB are refused, patches over MaxPatch, and more than a million
// predictions.
func ReadPredictions(path string) (Predictions, error) {
	data, err := readForeign(path, maxFile)
	if err != nil {
		return Predictions{}, fmt.Errorf("read predictions: %w", err)
	}
	return ParsePredictions(path, data)
}

// readForeign reads a file that may be anything, of at most so many bytes. A
// pipe is read where somebody writes to it; else its opening would never end.
func readForeign(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	wrong := func(why string) error { return &fs.PathError{Op: "read", Path: path, Err: errors.New(why)} }
	var data bytes.Buffer
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, wrong("it is a folder")
	case mode.IsRegular() && info.Size() > most:
		return nil, wrong(fmt.Sprintf("more than %d bytes", most))
	case mode.IsRegular():
		data.Grow(int(info.Size()) + bytes.MinRead) // and no more than that
	}
	if _, err := data.ReadFrom(io.LimitReader(f, most+1)); err != nil {
		return nil, err
	}
	switch {
	case int64(data.Len()) > most:
		return nil, wrong(fmt.Sprintf("more than %d bytes", most))
	case data.Len() == 0 && info.Mode()&fs.ModeNamedPipe != 0:
		return nil, wrong("nothing was written to this pipe")
	}
	return data.Bytes(), nil
}

// ParsePredictions is ReadPredictions for bytes that come from elsewhere; name
// stands in errors.
func ParsePredictions(name string, data []byte) (Predictions, error) {
	if len(data) > maxFile {
		return Predictions{}, fmt.Errorf("read predictions %s: more than %d bytes", name, maxFile)
	}
	if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		return Predictions{}, fmt.Errorf("read predictions %s: it is packed; unpack it with gunzip first", name)
	}
	r := predReader{place: map[string]int{}, from: map[string]jsonValue{}}
	err := eachValue(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), r.value)
	if err != nil {
		return Predictions{}, fmt.Errorf("read predictions %s: %w", name, err)
	}
	return r.read, nil
}

// predReader collects predictions.
type predReader struct {
	read  Predictions
	place map[string]int       // id -> index in the list
	from  map[string]jsonValue // id -> the prediction that counts so far
}

// value takes one value of the file: a prediction, a list, or an object of
// them.
func (r *predReader) value(v jsonValue) error {
	switch v.kind() {
	case "a list":
		for _, item := range v.members() {
			if err := r.add("", item); err != nil {
				return err
			}
		}
		return nil
	case "an object":
	default:
		return v.wrong("an object or a list of predictions is needed, found %s", v.kind())
	}
	members, objects := 0, 0
	for key, m := range v.members() {
		if key == "instance_id" {
			return r.add("", v)
		}
		members++
		if m.kind() == "an object" {
			objects++
		}
	}
	if objects == 0 && members > 0 {
		return v.wrong("instance_id is missing")
	}
	for key, m := range v.members() {
		if err := r.add(key, m); err != nil {
			return err
		}
	}
	return nil
}

// add takes one prediction; key is the id it stands under, or empty.
func (r *predReader) add(key string, v jsonValue) error {
	p, err := readPrediction(v)
	if err != nil {
		return err
	}
	switch {
	case p.InstanceID == "" && key == "":
		return v.wrong("instance_id is missing or empty")
	case p.InstanceID == "":
		p.InstanceID = key
	case key != "" && key != p.InstanceID:
		// Keys may be anything to the official harness.
		r.warn(v, "the prediction under %.100q has the instance_id %.100q, which counts", key, p.InstanceID)
	}
	at, again := r.place[p.InstanceID]
	if again {
		r.warn(v, "%.100q is predicted again; this one counts, not the one of line %d", p.InstanceID, lineAt(v.text, r.from[p.InstanceID].from))
		r.read.List[at] = p
	} else {
		if len(r.read.List) == maxPredictions {
			return v.wrong("more than %d predictions", maxPredictions)
		}
		r.place[p.InstanceID] = len(r.read.List)
		r.read.List = append(r.read.List, p)
	}
	r.from[p.InstanceID] = v
	return nil
}

// maxPredictions bounds what is held of a file: a prediction takes far more memory
// than the few bytes that it may take there.
const maxPredictions = 1_000_000

// maxWarnings bounds what a file can make us say.
const maxWarnings = 100

func (r *predReader) warn(v jsonValue, format string, args ...any) {
	switch n := len(r.read.Warnings); {
	case n < maxWarnings:
		r.read.Warnings = append(r.read.Warnings, v.wrong(format, args...).Error())
	case n == maxWarnings:
		r.read.Warnings = append(r.read.Warnings, v.wrong("more is odd from here on").Error())
	}
}

func readPrediction(v jsonValue) (Prediction, error) {
	if v.kind() != "an object" {
		return Prediction{}, v.wrong("a prediction is an object, found %s", v.kind())
	}
	var p Prediction
	known := []struct {
		name string
		into *string
	}{{"instance_id", &p.InstanceID}, {"model_name_or_path", &p.Model}, {"model_patch", &p.Patch}}
	fields := map[string]json.RawMessage{} // the last of each name counts, as in Python
	for key, m := range v.members() {
		if key == known[0].name || key == known[1].name || key == known[2].name {
			fields[key] = m.data()
		}
	}
	for _, f := range known {
		raw, kind := fields[f.name], KindOf(fields[f.name])
		if kind == "nothing" || kind == "null" {
			p.Null = p.Null || f.into == &p.Patch
			continue
		}
		if kind != "a string" {
			return p, v.wrong("%s: a string is needed, found %s", f.name, kind)
		}
		if err := json.Unmarshal(raw, f.into); err != nil {
			return p, v.wrong("%s: %w", f.name, err)
		}
		if strings.ContainsRune(*f.into, utf8.RuneError) && halfRune(raw) {
			return p, v.wrong("%s: half of a surrogate pair, which is no text", f.name)
		}
	}
	if len(p.Patch) > maxPatch {
		return p, v.wrong("model_patch: more than %d bytes", maxPatch)
	}
	return p, nil
}

// halfRune tells whether a JSON string has an escape that is half of a
// character. Go would put another character in its place, and the patch would
// be a different one.
func halfRune(raw []byte) bool {
	unit := func(at int) rune { // the UTF-16 unit of an escape there, else -1
		if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		switch r := unit(i); {
		case r >= 0xd800 && r <= 0xdbff:
			if low := unit(i + 6); low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		case r >= 0xdc00 && r <= 0xdfff:
			return true
		default:
			i++ // whatever is escaped, such as another backslash
		}
	}
	return false
}
