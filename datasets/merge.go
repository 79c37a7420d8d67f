package datasets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// merge merges two rows with the same id. Columns in both rows must be equal as JSON: the
// order of keys and the notation of numbers do not matter, null equals a missing column, a
// list of tests equals a string with the list as JSON, and a version that is a number equals
// the same text as a string.
func merge(a, b sourceRow) (sourceRow, error) {
	row := maps.Clone(a.Row)
	var differ []string
	for name, raw := range b.Row {
		old, both := row[name]
		switch {
		case !both || isNull(old):
			row[name] = raw
		case !isNull(raw) && !sameColumn(name, old, raw):
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		return sourceRow{}, &dataError{fmt.Sprintf("instance %s differs between %s and %s: column %s; use one of them, or filter the rows (--filter)",
			a.ID, a.from, b.from, printable(differ[0]))}
	}
	in, err := fromColumns(row)
	if err != nil {
		return sourceRow{}, &dataError{fmt.Sprintf("instance %s, merged from %s and %s: %v", a.ID, a.from, b.from, err)}
	}
	return sourceRow{in, a.from}, nil
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// sameColumn compares two values of a column. It parses the columns that have several
// notations.
func sameColumn(name string, a, b json.RawMessage) bool {
	switch name {
	case "FAIL_TO_PASS", "PASS_TO_PASS":
		x, errX := testNames(map[string]json.RawMessage{name: a}, name)
		y, errY := testNames(map[string]json.RawMessage{name: b}, name)
		return errX == nil && errY == nil && slices.Equal(x, y)
	case "version":
		x, errX := version(a)
		y, errY := version(b)
		return errX == nil && errY == nil && x == y || sameJSON(a, b)
	}
	return sameJSON(a, b)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return bytes.Equal(a, b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func decodeJSON(raw json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a float64 would round large integers
	err = dec.Decode(&v)
	return v, err
}
