package worktree

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// What comes out of a sandbox may be anything: reading it never panics, never
// gives more than came, and what it shows is fit to be shown.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(marker+"\nexact 4cb29ea38f70d7c61b2a3a25b02e3bdf44905402 0 2 4 1\nx\x00diff"), []byte("diff --git a/x b/x\n"))
	f.Add([]byte(marker+"\nlarge none 9999999999999999999 -1 0 0\n"), []byte("diff --git \"a/\\303x\" \"b/\\303x\"\n\xff"))
	f.Add([]byte("head=4cb29ea38f70d7c61b2a3a25b02e3bdf44905402\nobjects=-1\n"), []byte(nil))
	f.Fuzz(func(t *testing.T, out, patch []byte) {
		if a, err := parseAnswer(out); err == nil && len(a.words)+len(a.omitted)+len(a.patch) > len(out) {
			t.Errorf("%d bytes became %+v", len(out), a)
		}
		if p := new(Proof); p.read(out) == nil && (p.Objects < 0 || p.StrayCommits < 0) {
			t.Errorf("%+v", p)
		}
		if s := printable(out); !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\x7f\r") || len(s) > 2100 {
			t.Errorf("%q is shown", s)
		}
		if end, _ := missingEnd(patch); strings.Trim(end, "\n") != "" {
			t.Errorf("%q", end)
		}
		var all []byte
		for s := range sections(patch) {
			all = append(all, s...)
		}
		if !bytes.Equal(all, patch) {
			t.Errorf("sections of %q are %q", patch, all)
		}
		attributes(patch)
		if s := (State{Ignored: out, Left: out}); strings.Contains(s.functions(), "\x00") {
			t.Errorf("a NUL is in %q", s.functions())
		}
		shadowSettings(strings.Repeat("0", 40), out)
	})
}
