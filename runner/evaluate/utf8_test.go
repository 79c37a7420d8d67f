package evaluate

import (
	"bytes"
	"testing"

	"github.com/minibench/mini/runner/grade/logs"
)

// FuzzValidText checks that text written in pieces equals text written at once.
func FuzzValidText(f *testing.F) {
	for _, text := range []string{
		"plain", "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xff\xfe", "\xe2\x82", "\xe2\x82x", "\xf0\x9f\x98", "\xf0\x9f\xe2\x82\xac",
		"\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "\x80\x80\x80\x80", "a\xe2", "\xf0\x80\x80\x80",
	} {
		f.Add([]byte(text), []byte{0})
		f.Add([]byte(text), []byte{1, 0, 2})
	}
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		var got bytes.Buffer
		v := &utf8Writer{w: &got}
		for rest := text; len(rest) > 0; {
			n := 1
			if len(cuts) > 0 {
				n, cuts = int(cuts[0])+1, cuts[1:]
			}
			n = min(n, len(rest))
			if m, err := v.Write(rest[:n]); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if err := v.Flush(); err != nil {
			t.Fatal(err)
		}
		if want := logs.ToValidUTF8(text); !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%q becomes %q, want %q", text, got.Bytes(), want)
		}
	})
}
