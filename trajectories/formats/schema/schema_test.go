package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/minibench/mini/trajectories/formats/schema"
)

type document struct {
	Name  string          `json:"name" schema:"required,one=a|b"`
	Count *int            `json:"count" schema:"min=1"`
	Extra json.RawMessage `json:"extra" schema:"object"`
	Parts []struct {
		OK    bool    `json:"ok"`
		Ratio float64 `json:"ratio" schema:"notnull"`
	} `json:"parts"`
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"a","count":2,"extra":{},"parts":[{"ok":true,"ratio":0.5}]}`: "",
		`{"name":"b","count":null,"parts":null}`:                              "",
		`[]`:                                                                  "root: an object expected, got a list",
		`{"name":null}`:                                                       "root.name: a string expected, got null",
		`{"name":"c"}`:                                                        `root.name: one of a, b expected, got "c"`,
		`{"count":0}`:                                                         "root.name: required field is missing; root.count: 0 is less than 1",
		`{"name":"a","count":1.5}`:                                            "root.count: a whole number expected, got 1.5",
		`{"name":"a","extra":[]}`:                                             "root.extra: an object expected, got a list",
		`{"name":"a","parts":[{},{"ok":"no"}]}`:                               "root.parts.1.ok: true or false expected, got a string",
		`{"name":"a","parts":[{"ratio":null}]}`:                               "root.parts.0.ratio: a number expected, got null",
		`{"name":"a","N\n":1,"Name":1}`:                                       `root."N\n": unknown; root.Name: unknown`,
	} {
		var got []string
		r := schema.New("root", func(path, reason string) { got = append(got, path+": "+reason) })
		r.AllowUnknown = func(path string) bool {
			got = append(got, path+": unknown")
			return false
		}
		ok := r.Read(json.RawMessage(text), &document{})
		if all := strings.Join(got, "; "); all != want || ok != (want == "") {
			t.Errorf("%s: %t, %q, want %q", text, ok, all, want)
		}
	}
}

func TestLenientRead(t *testing.T) {
	for _, text := range []string{`{"name":"a","count":"1_0"}`, `{"name":"a","count":true}`, `{"name":"a","parts":[{"ok":"yes","ratio":"1e3"}]}`} {
		for _, lenient := range []bool{false, true} {
			r := schema.New("", func(string, string) {})
			if r.Lenient = lenient; r.Read(json.RawMessage(text), &document{}) != lenient {
				t.Errorf("%s: lax is %t", text, lenient)
			}
		}
	}
}
