package envtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/env"
)

// output: the output of commands is returned byte for byte.
func output(t *testing.T, s suite) {
	b := s.start(t)
	for _, c := range []struct{ name, script, want string }{
		{"nothing", "true", ""},
		{"no final newline", "printf x", "x"},
		{"both streams in order", "echo 1; echo 2 >&2; echo 3; echo 4 >&2", "1\n2\n3\n4\n"},
		{"carriage returns", `printf 'a\r\nb\rc\n'`, "a\r\nb\rc\n"},
		{"NUL bytes", `printf 'a\0b\0'`, "a\x00b\x00"},
		{"every byte", "printf '" + escaped(allBytes()) + "'", allBytes()},
		{"invalid UTF-8", `printf '\xff\xc3(\xe2\x82'`, "\xff\xc3(\xe2\x82"},
		{"characters", `printf 'h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80'`, "hé € 😀"},
		{"a character in pieces", `printf '\xe2'; sleep 0.03; printf '\x82'; sleep 0.03; printf '\xac'`, "€"},
		{"terminal codes", `printf '\033[31mred\033[0m\a\b'`, "\x1b[31mred\x1b[0m\a\b"},
		{"no terminal", "test -t 0 || test -t 1 || test -t 2 || echo none", "none\n"},
		{"empty input", "cat; read -r x || echo end", "end\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := sandbox{b, t}
			r := b.run(env.Command{Script: c.script})
			if diff := cmp.Diff(c.want, string(r.Output)); diff != "" {
				t.Errorf("output differs (-want +got):\n%s", diff)
			}
			if want := int64(len(c.want)); r.Bytes != want || r.Truncated {
				t.Errorf("%d bytes, truncated %v; want %d, whole", r.Bytes, r.Truncated, want)
			}
			if want := int64(utf8.RuneCountInString(c.want)); r.Chars != want {
				t.Errorf("%d characters, want %d", r.Chars, want)
			}
		})
	}
}

// escaped returns text as a format of printf.
func escaped(text string) string {
	var s strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&s, `\x%02x`, c)
	}
	return s.String()
}

func allBytes() string {
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	return string(all[:])
}

// outputLimits: an output is complete up to the limit; beyond it, head and tail are
// kept.
func outputLimits(t *testing.T, s suite) {
	b := s.start(t)
	for _, c := range []struct {
		name         string
		limit, bytes int
		kept         int
	}{
		{"below", 0, env.DefaultOutputLimit - 1, env.DefaultOutputLimit - 1},
		{"exact", 0, env.DefaultOutputLimit, env.DefaultOutputLimit},
		{"one more", 0, env.DefaultOutputLimit + 1, env.DefaultOutputLimit},
		{"own limit", 100_000, 400_000, 100_000},
		{"odd limit", 100_001, 400_000, 100_001},
		{"too small a limit", 1, 400_000, env.MinOutputLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := sandbox{b, t}
			// Numbered lines of 8 bytes identify every position.
			r := b.run(env.Command{
				Script:      fmt.Sprintf("seq -f %%07.0f 0 %d | head -c %d", c.bytes/8+1, c.bytes),
				OutputLimit: c.limit,
			})
			if len(r.Output) != c.kept || r.Truncated != (c.bytes > c.kept) || r.Bytes != int64(c.bytes) || r.Chars != int64(c.bytes) {
				t.Fatalf("kept %d of %d bytes (%d characters), truncated %v; want %d of %d",
					len(r.Output), r.Bytes, r.Chars, r.Truncated, c.kept, c.bytes)
			}
			if r.Truncated && r.Head != c.kept/2 {
				t.Errorf("head is %d bytes, want %d", r.Head, c.kept/2)
			}
			head, tail := r.Output, []byte(nil)
			if r.Truncated {
				head, tail = r.Output[:r.Head], r.Output[r.Head:]
			}
			checkNumbers(t, "head", head, 0)
			checkNumbers(t, "tail", tail, c.bytes-len(tail))
		})
	}
}

// checkNumbers compares part with the numbered lines at an offset in bytes.
func checkNumbers(t *testing.T, name string, part []byte, offset int) {
	t.Helper()
	want := make([]byte, 0, len(part)+16)
	for n := offset / 8; len(want) < len(part)+8; n++ {
		want = fmt.Appendf(want, "%07d\n", n)
	}
	if !bytes.Equal(part, want[offset%8:][:len(part)]) {
		t.Errorf("the %s differs from the stream", name)
	}
}

// submissions: a first line that is a marker raises the output limit.
func submissions(t *testing.T, s suite) {
	const size = 2 * env.DefaultOutputLimit
	b := s.start(t)
	for _, c := range []struct {
		name, script string
		whole        bool
	}{
		{"first line", "echo SUBMIT", true},
		{"other marker", "echo DONE", true},
		{"blank lines before", `printf '\n \t\r\n  SUBMIT\n'`, true},
		{"spaces after", `printf 'SUBMIT \t\r\n'`, true},
		{"in pieces", "printf '\n SUB'; sleep 0.03; printf MIT; sleep 0.03; echo", true},
		{"unusual spaces", `printf '\xe2\x80'; sleep 0.03; printf '\x83\xc2\xa0SUBMIT\n'`, true},
		{"long blank beginning", "head -c 200000 /dev/zero | tr '\\0' ' '; echo SUBMIT", false},
		{"longer line", "echo SUBMIT now", false},
		{"longer word", "echo SUBMITS", false},
		{"second line", "echo; echo x; echo SUBMIT", false},
		{"shorter", "echo SUB", false},
		{"lower case", "echo submit", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := sandbox{b, t}
			r := b.run(env.Command{
				Script:            c.script + fmt.Sprintf("; head -c %d /dev/zero", size),
				SubmissionMarkers: []string{"SUBMIT", "DONE"},
			})
			if r.Bytes < size || r.Truncated == c.whole || (c.whole && int64(len(r.Output)) != r.Bytes) {
				t.Errorf("kept %d of %d bytes, truncated %v; want whole: %v", len(r.Output), r.Bytes, r.Truncated, c.whole)
			}
		})
	}
	for name, c := range map[string]struct{ script, want string }{
		"standard error before the marker": {"echo warning >&2; echo SUBMIT; echo more >&2; echo patch", "SUBMIT\npatch\n"},
		"much of it":                       {"seq 1 20000 >&2; echo SUBMIT; echo patch", "SUBMIT\npatch\n"},
		"much of it after the marker":      {"echo SUBMIT; echo patch; seq 1 400000 >&2", "SUBMIT\npatch\n"},
		"no end of line":                   {"echo warning >&2; printf SUBMIT", "SUBMIT"},
		"another first line":               {"echo a; echo SUBMIT", "a\nSUBMIT\n"},
		"a failure":                        {"echo SUBMIT; echo warning >&2; exit 1", "SUBMIT\nwarning\n"},
		"only standard error":              {"echo SUBMIT >&2", "SUBMIT\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sandbox{b, t}.run(env.Command{Script: c.script, SubmissionMarkers: []string{"SUBMIT"}})
			if string(r.Output) != c.want {
				t.Errorf("output is %.200q, want %q", r.Output, c.want)
			}
		})
	}
	t.Run("byte for byte", func(t *testing.T) { sandbox{b, t}.checkSubmission(2_000_000) })
}

// checkSubmission submits size bytes.
func (b sandbox) checkSubmission(size int) {
	b.t.Helper()
	r := b.run(env.Command{Script: fmt.Sprintf("echo SUBMIT; seq -f %%07.0f 0 %d", size/8-1), SubmissionMarkers: []string{"SUBMIT"}, Timeout: 10 * time.Minute})
	patch, ok := strings.CutPrefix(string(r.Output), "SUBMIT\n")
	if !ok || len(patch) != size {
		b.t.Fatalf("kept %d of %d bytes", len(r.Output), r.Bytes)
	}
	checkNumbers(b.t, "submission", []byte(patch), 0)
}
