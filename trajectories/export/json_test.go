package export

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzString holds strings against those of encoding/json.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\r\t\b\f\x00\x1f\x7f", "ü→\u2028\u2029😀", "\xff\xc3", "<&>", "tail\xe2\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := string(appendString(nil, s)); got != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%q is %s, want %s", s, got, want.String())
		}
	})
}
