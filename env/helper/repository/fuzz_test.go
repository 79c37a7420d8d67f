package repository

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// For any input, the readers of foreign text do not panic, and return no more than they
// were given.
func FuzzForeignText(f *testing.F) {
	f.Add([]byte("diff --git a/x b/x\n"))
	f.Add([]byte("diff --git \"a/\\303x\" \"b/\\303x\"\n\xff\nGIT binary patch\n"))
	f.Add([]byte("core.filemode\ntrue\x00filter.x.clean\na \"b\"\x00"))
	f.Add([]byte("1 2\tname\x003\tother/\x00"))
	good, err := Encode(Response{Tree: strings.Repeat("0", 40), Patch: []byte{0, 255}, State: &State{Ignored: []byte("a\x00")}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := Decode[Response](data); err == nil {
			again, err := Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := Decode[Response](again); err != nil || toJSON(t, back) != toJSON(t, r) {
				t.Errorf("%+v became %+v, %v", r, back, err)
			}
		}
		if end, _ := missingNewlines(data); strings.Trim(end, "\n") != "" {
			t.Errorf("%q", end)
		}
		var all []byte
		for s := range fileSections(data) {
			all = append(all, s...)
		}
		if !bytes.Equal(all, data) {
			t.Errorf("sections of %q are %q", data, all)
		}
		binaryAttributes(data)
		for _, l := range (State{LeftOut: data}).leftOut() {
			excludePattern(l.name)
		}
		if s := settingsFile(strings.Repeat("0", 40), data); bytes.Count(s, []byte("\x00")) > 0 {
			t.Errorf("a NUL is in %q", s)
		}
		parseHash(data)
	})
}

func toJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
