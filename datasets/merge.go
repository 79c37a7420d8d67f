package datasets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// merge makes one row of two with the same id. Columns that both have must
// mean the same as JSON: the order of keys and the way a number is written do
// not matter, null is as good as no column, and a list of tests equals a string
// that holds the list.
func merge(a, b origin) (origin, error) {
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
		return origin{}, &badData{fmt.Sprintf("instance %s is not the same in %s and in %s: column %s; take one of the two, or rows that are equal (--filter)",
			a.ID, a.from, b.from, printable(differ[0]))}
	}
	in, err := fromColumns(row)
	if err != nil {
		return origin{}, &badData{fmt.Sprintf("instance %s, merged of %s and %s: %v", a.ID, a.from, b.from, err)}
	}
	return origin{in, a.from}, nil
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// sameColumn reads the columns that have two spellings as fromColumns does.
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
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decoded(a)
	y, errY := decoded(b)
	return errX == nil && errY == nil && sameValue(x, y)
}

func decoded(raw json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a float64 cannot tell large integers apart, and shows numbers in its own way
	err = dec.Decode(&v)
	return v, err
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	}
	return a == b
}

// sameNumber compares what is written in two ways, as 1.50e1 and 15, by more
// digits than any dataset has.
func sameNumber(a, b json.Number) bool {
	const bits, longest = 1024, 300
	if a == b || len(a) > longest || len(b) > longest {
		return a == b
	}
	x, _, errX := big.ParseFloat(string(a), 10, bits, big.ToNearestEven)
	y, _, errY := big.ParseFloat(string(b), 10, bits, big.ToNearestEven)
	return errX == nil && errY == nil && !x.IsInf() && x.Cmp(y) == 0
}
