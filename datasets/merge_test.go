package datasets_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
)

// both loads two sources with one row each; a and b are further columns of the rows.
func both(t *testing.T, a, b string) (datasets.Set, error) {
	t.Helper()
	source := func(name, columns string) datasets.Source {
		return datasets.Embedded(name, fmt.Appendf(nil, `{"instance_id":"i","problem_statement":"p"%s}`, columns))
	}
	return datasets.Load(t.Context(), []datasets.Source{source("one", a), source("two", b)}, datasets.AllRows)
}

func TestMergeEqualRows(t *testing.T) {
	for name, tt := range map[string]struct{ a, b, column, want string }{
		"the same":               {`,"x":1`, `,"x":1`, "x", "1"},
		"one has more":           {``, `,"x":1`, "x", "1"},
		"the other has more":     {`,"x":1`, ``, "x", "1"},
		"null is nothing":        {`,"x":null`, `,"x":1`, "x", "1"},
		"nothing is null":        {`,"x":1`, `,"x": null`, "x", "1"},
		"order of keys":          {`,"x":{"a":1,"b":[{"c":2,"d":3}]}`, `,"x":{"b":[{"d":3,"c":2}],"a":1}`, "x", `{"a":1,"b":[{"c":2,"d":3}]}`},
		"spelling of a string":   {`,"x":"é"`, `,"x":"\u00e9"`, "x", `"é"`},
		"spelling of a number":   {`,"x":1500`, `,"x":1.50e3`, "x", "1500"},
		"zero":                   {`,"x":0`, `,"x":-0.00E+7`, "x", "0"},
		"a fraction":             {`,"x":0.05`, `,"x":5e-2`, "x", "0.05"},
		"a list of tests":        {`,"FAIL_TO_PASS":["a","b"]`, `,"FAIL_TO_PASS":"[\"a\", \"b\"]"`, "FAIL_TO_PASS", `["a","b"]`},
		"an empty list of tests": {`,"PASS_TO_PASS":[]`, `,"PASS_TO_PASS":""`, "PASS_TO_PASS", `[]`},
		"version as a number":    {`,"version":"1.2"`, `,"version":1.2`, "version", `"1.2"`},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := both(t, tt.a, tt.b)
			if err != nil {
				t.Fatal(err)
			}
			if len(set.Instances) != 1 || len(set.IDs) != 1 || string(set.Instances[0].Row[tt.column]) != tt.want {
				t.Errorf("%d rows, %s; want %s", len(set.IDs), set.Instances[0].Row[tt.column], tt.want)
			}
		})
	}
}

func TestMergeRefusesRowsThatDiffer(t *testing.T) {
	for name, tt := range map[string]struct{ a, b, column string }{
		"a string":                {`,"patch":"x"`, `,"patch":"y"`, "patch"},
		"the first of several":    {`,"b":1,"a":1`, `,"b":2,"a":2`, "a"},
		"sign":                    {`,"x":1`, `,"x":-1`, "x"},
		"power":                   {`,"x":10`, `,"x":100`, "x"},
		"a power beyond bounds":   {`,"x":1e99999999999999999999`, `,"x":2e99999999999999999999`, "x"},
		"number and text":         {`,"x":1`, `,"x":"1"`, "x"},
		"a list as text":          {`,"x":["a"]`, `,"x":"[\"a\"]"`, "x"},
		"order of a list":         {`,"PASS_TO_PASS":["a","b"]`, `,"PASS_TO_PASS":["b","a"]`, "PASS_TO_PASS"},
		"length of a list":        {`,"x":[1]`, `,"x":[1,1]`, "x"},
		"keys":                    {`,"x":{"a":1}`, `,"x":{"b":1}`, "x"},
		"deep below":              {`,"x":[{"a":[1]}]`, `,"x":[{"a":[2]}]`, "x"},
		"false and nothing":       {`,"x":false`, `,"x":""`, "x"},
		"version in another form": {`,"version":"1.10"`, `,"version":1.1`, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := both(t, tt.a, tt.b)
			want := "instance i differs between one and two: column " + tt.column + ";"
			if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

func TestMergeOrderAndSelection(t *testing.T) {
	source := func(name string, ids ...string) datasets.Source {
		var text strings.Builder
		for _, id := range ids {
			text.WriteString(line(id))
		}
		return datasets.Embedded(name, []byte(text.String()))
	}
	different := datasets.Embedded("three", []byte(`{"instance_id":"b","problem_statement":"another"}`))
	sources := []datasets.Source{source("one", "b", "a"), source("two", "c", "a"), different}
	set, err := datasets.Load(t.Context(), sources, datasets.Selection{Filter: "a|c"}.Apply) // without b, whose rows differ
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, in := range set.Instances {
		ids = append(ids, in.ID)
	}
	if diff := cmp.Diff([]string{"a", "c"}, ids); diff != "" || len(set.IDs) != 3 {
		t.Errorf("%d rows (-want +got):\n%s", len(set.IDs), diff)
	}
	if _, err := datasets.Load(t.Context(), sources, datasets.AllRows); !errors.Is(err, datasets.ErrData) {
		t.Errorf("with b: %v", err)
	}
}

func TestInstanceJSON(t *testing.T) {
	set, err := read(t, "x", `{"problem_statement":"<&>","z":{"b":1.50,"a":2},"instance_id":"i"}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := set.Instances[0].JSON()
	const want = `{
  "instance_id": "i",
  "problem_statement": "<&>",
  "z": {
    "a": 2,
    "b": 1.50
  }
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("JSON (-want +got), %v:\n%s", err, diff)
	}
}
