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

// columnsOf reads one row of JSON, and the id that it has.
func columnsOf(data []byte) (row map[string]json.RawMessage, id string, err error) {
	if err := json.Unmarshal(data, &row); err != nil {
		return nil, "", explain(err)
	}
	if row == nil {
		return nil, "", errors.New("not an object")
	}
	if err := text(row, "instance_id", &id); err != nil {
		return nil, "", err
	}
	return row, id, CheckID(id)
}

// fromColumns makes an instance of one row. Columns may be missing, except
// instance_id and problem_statement; those that are there must be of their
// kind.
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
		{"hints_text", &in.Hints},
		{"created_at", &in.CreatedAt},
		{"patch", &in.Patch},
		{"test_patch", &in.TestPatch},
		{"eval_script", &in.EvalScript},
		{"log_parser", &in.LogParser},
		{"eval_type", &in.EvalType},
	} {
		if err := text(row, c.name, c.into); err != nil {
			return Instance{}, err
		}
	}
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
		if err := text(row, name, &in.Image); err != nil {
			return Instance{}, err
		}
		if in.Image != "" {
			break
		}
	}
	if err := CheckID(in.ID); err != nil {
		return Instance{}, err
	}
	if _, ok := row["problem_statement"]; !ok {
		return Instance{}, fmt.Errorf("problem_statement is missing (instance %.100q)", in.ID)
	}
	return in, nil
}

// text reads a column that holds a string; null and a missing one are empty.
func text(row map[string]json.RawMessage, name string, into *string) error {
	raw, ok := row[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: a string is needed, found %s", name, kind(raw))
	}
	return nil
}

// version is a string in the official sets and a number in some others.
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
	return "", fmt.Errorf("version: a string is needed, found %s", kind(raw))
}

// testNames reads a list, or a string that holds one as JSON.
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
		return nil, fmt.Errorf("%s: a list of strings is needed, or a string that holds one as JSON", name)
	}
	return names, nil
}

func kind(raw json.RawMessage) string {
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

// explain says what encoding/json found, without Go's type names.
func explain(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("an object is needed, found a %s", t.Value)
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON (byte %d): %w", s.Offset, err)
	}
	return err
}

// maxID leaves room for the endings of files named after an instance.
const maxID = 200

// CheckID refuses ids that could not be, or should not be, the name of a
// folder: they come from files of strangers.
func CheckID(id string) error {
	bad := func(why string) error { return fmt.Errorf("instance_id %.100q %s", id, why) }
	switch {
	case id == "":
		return errors.New("instance_id is missing or empty")
	case len(id) > maxID:
		return bad(fmt.Sprintf("is longer than %d bytes", maxID))
	case !utf8.ValidString(id):
		return bad("is not UTF-8")
	case strings.ContainsAny(id, `/\`):
		return bad("has a slash, and would leave the run's folder")
	case strings.HasPrefix(id, "."), strings.HasPrefix(id, "-"):
		return bad("begins with . or -")
	case strings.TrimSpace(id) != id:
		return bad("begins or ends with white space")
	case strings.ContainsFunc(id, unprintable):
		return bad("has a character that cannot be printed")
	}
	for _, name := range reserved {
		if strings.EqualFold(id, name) {
			return bad("is the name of one of the run's own files")
		}
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
