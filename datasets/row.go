package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// columnsOf parses a row in JSON and returns its columns and its id.
func columnsOf(data []byte) (row map[string]json.RawMessage, id string, err error) {
	err = json.Unmarshal(data, &row)
	if _, invalid := errors.AsType[*json.SyntaxError](err); invalid && json.Unmarshal(withoutNaN(data), &row) == nil {
		err = nil
	}
	if err != nil {
		return nil, "", jsonError(err)
	}
	if row == nil {
		return nil, "", errors.New("not an object")
	}
	if err := readString(row, "instance_id", &id); err != nil {
		return nil, "", err
	}
	return row, id, CheckID(id)
}

// fromColumns converts a row to an instance. Only instance_id and problem_statement are
// required. Other columns that a run or an evaluation uses must have the right type if they
// are present.
func fromColumns(row map[string]json.RawMessage) (Instance, error) {
	in := Instance{Row: row}
	for _, c := range []struct {
		name string
		into *string
	}{
		{"instance_id", &in.ID},
		{"repo", &in.Repo},
		{"base_commit", &in.BaseCommit},
		{"problem_statement", &in.ProblemStatement},
		{"patch", &in.Patch},
		{"test_patch", &in.TestPatch},
		{"eval_script", &in.EvalScript},
		{"log_parser", &in.LogParser},
		{"eval_type", &in.EvalType},
	} {
		if err := readString(row, c.name, c.into); err != nil {
			return Instance{}, err
		}
	}
	in.Hints, in.CreatedAt = anyText(row["hints_text"]), anyText(row["created_at"])
	var err error
	if in.Version, err = version(row["version"]); err != nil {
		return Instance{}, err
	}
	if in.FailToPass, err = testNames(row, "FAIL_TO_PASS"); err != nil {
		return Instance{}, err
	}
	if in.PassToPass, err = testNames(row, "PASS_TO_PASS"); err != nil {
		return Instance{}, err
	}
	for _, name := range []string{"image", "image_name", "docker_image"} {
		if err := readString(row, name, &in.Image); err != nil {
			return Instance{}, err
		}
		if in.Image != "" {
			break
		}
	}
	if err := CheckID(in.ID); err != nil {
		return Instance{}, err
	}
	if tag, ok := row["dockerhub_tag"]; ok && string(tag) != "null" && in.Image == "" {
		return Instance{}, fmt.Errorf("%.100s is a row of SWE-bench Pro V1 (dockerhub_tag), which is superseded and which mini does not run; "+
			"use the tasks of V2: --subset v2/tasks in a checkout of github.com/scaleapi/SWE-bench_Pro-os", in.ID)
	}
	if raw := row["problem_statement"]; len(raw) == 0 || string(raw) == "null" { // also NaN
		return Instance{}, fmt.Errorf("problem_statement is missing (instance %.100q)", in.ID)
	}
	return in, nil
}

// readString reads a string column; null and a missing column are "".
func readString(row map[string]json.RawMessage, name string, into *string) error {
	raw, ok := row[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: it must be a string, not %s", name, jsonKind(raw))
	}
	return nil
}

// anyText returns a column that has no effect on a run, so that it may have any type: its
// JSON if it is not a string.
func anyText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil { // also null
		return s
	}
	return string(raw)
}

// version reads a version, which is a string in the official datasets and a number in
// some others.
func version(raw json.RawMessage) (string, error) {
	var s string
	var n json.Number
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case json.Unmarshal(raw, &s) == nil:
		return s, nil
	case json.Unmarshal(raw, &n) == nil:
		return n.String(), nil
	}
	return "", fmt.Errorf("version: it must be a string, not %s", jsonKind(raw))
}

// testNames reads a list of strings, or a string with the list as JSON.
func testNames(row map[string]json.RawMessage, name string) ([]string, error) {
	raw, ok := row[name]
	if !ok || string(raw) == "null" {
		return nil, nil
	}
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		if strings.TrimSpace(inner) == "" {
			return nil, nil
		}
		raw = json.RawMessage(inner)
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil {
		return nil, fmt.Errorf("%s: it must be a list of strings, or a string with such a list as JSON", name)
	}
	return names, nil
}

func jsonKind(raw json.RawMessage) string {
	switch c := bytes.TrimSpace(raw)[0]; c {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	default:
		return "a number"
	}
}

// jsonError replaces Go's type names in an error of encoding/json.
func jsonError(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("it must be an object, not a %s", t.Value)
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON (byte %d): %w", s.Offset, err)
	}
	return err
}

// maxID is the longest id, in bytes. It leaves room for suffixes of file names.
const maxID = 200

// CheckID rejects ids that are invalid, unsafe as the name of a directory, or the name of a
// file or directory of the run (see names.go). Datasets are untrusted.
func CheckID(id string) error {
	invalid := func(why string) error { return fmt.Errorf("instance_id %.100q %s", id, why) }
	switch {
	case id == "":
		return errors.New("instance_id is missing or empty")
	case len(id) > maxID:
		return invalid(fmt.Sprintf("is longer than %d bytes", maxID))
	case !utf8.ValidString(id):
		return invalid("is not UTF-8")
	case strings.ContainsAny(id, `/\`):
		return invalid("has a slash; it would be a path outside the run folder")
	case strings.HasPrefix(id, "."), strings.HasPrefix(id, "-"):
		return invalid("starts with . or -")
	case strings.TrimSpace(id) != id:
		return invalid("starts or ends with white space")
	case strings.ContainsFunc(id, isUnprintable):
		return invalid("has an unprintable character")
	}
	for _, name := range runFiles {
		if strings.EqualFold(id, name) {
			return invalid("is the name of a file of the run")
		}
	}
	return nil
}

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) }
