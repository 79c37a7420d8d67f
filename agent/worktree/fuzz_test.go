package worktree

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// For any output of a sandbox, parsing does not panic, returns no more than it
// was given, and returns printable text.
func FuzzParseOutput(f *testing.F) {
	f.Add([]byte(marker+"\nexact 4cb29ea38f70d7c61b2a3a25b02e3bdf44905402 0 2 4 1\nx\x00diff"), []byte("diff --git a/x b/x\n"))
	f.Add([]byte(marker+"\nlarge none 9999999999999999999 -1 0 0\n"), []byte("diff --git \"a/\\303x\" \"b/\\303x\"\n\xff"))
	f.Add([]byte("head=4cb29ea38f70d7c61b2a3a25b02e3bdf44905402\nobjects=-1\n"), []byte(nil))
	f.Fuzz(func(t *testing.T, out, patch []byte) {
		if a, err := parseOutput(out); err == nil && len(a.message)+len(a.omitted)+len(a.patch) > len(out) {
			t.Errorf("%d bytes became %+v", len(out), a)
		}
		if p := new(ScrubReport); p.parse(out) == nil && (p.Objects < 0 || p.StrayCommits < 0) {
			t.Errorf("%+v", p)
		}
		if s := sanitize(out); !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\x7f\r") || len(s) > 2100 {
			t.Errorf("%q is shown", s)
		}
		if end, _ := missingNewlines(patch); strings.Trim(end, "\n") != "" {
			t.Errorf("%q", end)
		}
		var all []byte
		for s := range fileSections(patch) {
			all = append(all, s...)
		}
		if !bytes.Equal(all, patch) {
			t.Errorf("sections of %q are %q", patch, all)
		}
		binaryAttributes(patch)
		if s := (State{Ignored: out, LeftOut: out}); strings.Contains(s.shellFunctions(), "\x00") {
			t.Errorf("a NUL is in %q", s.shellFunctions())
		}
		shadowSettings(strings.Repeat("0", 40), out)
	})
}
