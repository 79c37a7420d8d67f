package sanitize_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/sanitize/attacktest"
)

// No attack controls a terminal after sanitizing, and the text around the attack stays.
func TestAttacks(t *testing.T) {
	for _, attack := range attacktest.Attacks() {
		if attacktest.FindControl(attack.Text, attacktest.LineEnds|attacktest.Colours) == "" && !looksPlain[attack.Name] {
			t.Errorf("%s: the text controls no terminal", attack.Name)
		}
		for name, shown := range map[string]struct {
			text    string
			allowed attacktest.Allowed
		}{
			"Line":    {sanitize.Line(attack.Text), 0},
			"Text":    {sanitize.Text(attack.Text), attacktest.LineEnds},
			"Colours": {sanitize.Output(attack.Text), attacktest.LineEnds | attacktest.Colours},
		} {
			assert.Equal(t, "", attacktest.FindControl(shown.text, shown.allowed), "%s: %s leaves in %.200q", attack.Name, name, shown.text)
			// An output can overwrite itself, and an unterminated sequence swallows text. Line
			// and Text lose nothing.
			if name != "Colours" && (!strings.HasPrefix(shown.text, attacktest.Prefix) || !strings.HasSuffix(shown.text, attacktest.Suffix)) {
				t.Errorf("%s: %s lost what is around it: %.200q", attack.Name, name, shown.text)
			}
			if name != "Colours" && strings.Contains(attack.Text, attacktest.Payload) && !strings.Contains(shown.text, attacktest.Payload) {
				t.Errorf("%s: %s hides what it would do: %.200q", attack.Name, name, shown.text)
			}
		}
	}
}

// looksPlain lists attacks that are harmful only by position or number.
var looksPlain = map[string]bool{"flood of wide signs": true}

// The result does not depend on how the text is split.
func TestStreamChunks(t *testing.T) {
	for _, attack := range attacktest.Attacks() {
		want := sanitize.Output(attack.Text)
		if len(attack.Text) > 20_000 {
			continue // other attacks cover splitting
		}
		for _, size := range []int{1, 2, 3, 7} {
			assert.Equal(t, want, inChunks(t, attack.Text, size), "%s: in pieces of %d", attack.Name, size)
		}
		for at := range min(len(attack.Text), 100) {
			var b strings.Builder
			s := sanitize.NewStream(func(line string) { b.WriteString(line + "\n") })
			for _, piece := range []string{attack.Text[:at], attack.Text[at:]} {
				_, err := s.Write([]byte(piece))
				require.NoError(t, err)
				assert.Equal(t, "", attacktest.FindControl(s.UnfinishedLine(), attacktest.Colours), "%s: cut at %d, the unfinished line", attack.Name, at)
			}
			assert.Equal(t, want, b.String()+s.UnfinishedLine(), "%s: cut at %d", attack.Name, at)
		}
	}
}

func inChunks(t *testing.T, text string, size int) string {
	t.Helper()
	var b strings.Builder
	s := sanitize.NewStream(func(line string) { b.WriteString(line + "\n") })
	for len(text) > 0 {
		n := min(size, len(text))
		if wrote, err := s.Write([]byte(text[:n])); err != nil || wrote != n {
			t.Fatal(wrote, err)
		}
		text = text[n:]
	}
	return b.String() + s.UnfinishedLine()
}

func TestLineAndText(t *testing.T) {
	for _, tt := range []struct{ in, line, text string }{
		{"plain žluť 🐎", "plain žluť 🐎", "plain žluť 🐎"},
		{"a\nb\tc\rd", "a b c d", "a\nb       c\ufffdd"},
		{"a\r\nb\r\n", "a  b  ", "a\nb\n"},
		{"12345678\t1\n\tx", "12345678 1  x", "12345678        1\n        x"},
		{"\x1b]0;title\x07", "\ufffd]0;title\ufffd", "\ufffd]0;title\ufffd"},
		{"\u202eabc\u2066", "\ufffdabc\ufffd", "\ufffdabc\ufffd"},
		{"\x9b31m", "\ufffd31m", "\ufffd31m"},
		{"\u200bzero", "\ufffdzero", "\ufffdzero"},
		{"del\x7f\x00", "del\ufffd\ufffd", "del\ufffd\ufffd"},
		{"bad \xff utf8", "bad \ufffd utf8", "bad \ufffd utf8"},
		{"next\u0085line\ufe0f", "next\ufffdline", "next\ufffdline"},
		{"a\ufe0f\ufe0f", "a\ufffd", "a\ufffd"},
		{"zwölf\u00a0km, 日本\u3000語", "zwölf km, 日本\u3000語", "zwölf km, 日本\u3000語"},
		{"e\u0301\u0302\u0303\u0304", "e\u0301\u0302", "e\u0301\u0302"},
		{"\u0301x", "x", "x"},
		{"👨\u200d👩\u200d👧 👩🏽\u200d🚀", "👨👩👧 👩🚀", "👨👩👧 👩🚀"},
		{"❤\ufe0f\u200d🔥", "❤🔥", "❤🔥"},
		{"👨\u200d\u200d👩 a\u200db", "👨\ufffd👩 a\ufffdb", "👨\ufffd👩 a\ufffdb"},
		{"हिन्दी, ไทยที่, e\u0301", "हिन्दी, ไทยที่, e\u0301", "हिन्दी, ไทยที่, e\u0301"},
	} {
		assert.Equal(t, tt.line, sanitize.Line(tt.in), "Line(%q)", tt.in)
		assert.Equal(t, tt.text, sanitize.Text(tt.in), "Text(%q)", tt.in)
	}
}

func TestOutput(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "plain\n", "plain\n"},
		{"a colour", "a\x1b[31mred\x1b[0m b", "a\x1b[31mred\x1b[m b"},
		{"several", "\x1b[1;4;38;5;200;48;2;1;2;3mx\x1b[22;24;39;49my", "\x1b[1;4;38;5;200;48;2;1;2;3mx\x1b[my"},
		{"bright ones", "\x1b[91;104mx", "\x1b[91;104mx\x1b[m"},
		{"small numbers of the palette", "\x1b[38;5;1;48;5;12mx", "\x1b[38;5;1;48;5;12mx\x1b[m"},
		{"colons", "\x1b[38:2::1:2:3m\x1b[4:3mx\x1b[4:0my", "\x1b[4;38;2;1;2;3mx\x1b[m\x1b[38;2;1;2;3my\x1b[m"},
		{"over a line end", "\x1b[32mone\n\ntwo\x1b[m\n", "\x1b[32mone\x1b[m\n\n\x1b[32mtwo\x1b[m\n"},
		{"plain lines between", "a\n\x1b[32mb\nc\x1b[m\nd\n\x1b]0;t\ne\n\x1b[5C\nf\xc3\ng", "a\n\x1b[32mb\x1b[m\n\x1b[32mc\x1b[m\nd\n\ne\n\nf\ufffd\ng"},
		{"hidden and blinking", "\x1b[8;5mx\x1b[1my", "x\x1b[1my\x1b[m"},
		{"a progress bar", "get  10%\rget  50%\rget 100%\nok\n", "get 100%\nok\n"},
		{"a shorter text over it", "downloading\rdone\n", "doneloading\n"},
		{"erased", "downloading\r\x1b[Kdone\n", "done\n"},
		{"erased whole", "downloading\x1b[2K\x1b[1Gdone\n", "done\n"},
		{"erased to the left", "abcdef\x1b[3D\x1b[1Kx\n", "   xef\n"},
		{"CRLF", "a\r\nb\r\n", "a\nb\n"},
		{"CR at the end", "100%\r", "100%"},
		{"backspaces", "N\bNA\bAM\bM |/\b-\n", "NAM |-\n"},
		{"tabs", "a\tb\n12345678\tc\n", "a       b\n12345678        c\n"},
		{"a tab over text", "abcdefghij\r\tX", "abcdefghXj"},
		{"wide signs cut", "日本\r1", "1 本"},
		{"wide signs over narrow", "abcd\r日", "日cd"},
		{"a wide sign half over a wide one", "日本\x1b[4D\x1b[C語\n", " 語 \n"},
		{"gap", "a\x1b[5Cb", "a     b"},
		{"rows of the screen", "one\x1b[1A\rtwo\x1b[2Jthree\x1b[Hfour", "one\ntwothree\nfour"},
		{"a link", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\ after", "text after"},
		{"a title without an end", "\x1b]0;gone\nhere", "\nhere"},
		{"bells", "a\x07b\x00c\x0ed", "abcd"},
		{"a control of eight bits", "a\x9b31mb\u009b1mc", "a\ufffd31mb\ufffd1mc"},
		{"Latin-1", "caf\xe9\nx", "caf\ufffd\nx"},
		{"half a character at the end", "x\xe2\x82", "x\ufffd\ufffd"},
		{"marks", "e\u0301\u0302\u0303x\r\u0301y", "yx"},
		{"a mark on a wide sign", "日\u0301x", "日\u0301x"},
	} {
		got := sanitize.Output(tt.in)
		assert.Equal(t, tt.want, got, "%s: Colours(%q)", tt.name, tt.in)
		assert.Equal(t, got, sanitize.Output(got), "%s: a second time", tt.name)
	}
}

func TestStreamClose(t *testing.T) {
	var lines []string
	s := sanitize.NewStream(func(line string) { lines = append(lines, line) })
	_, err := s.Write([]byte("one\n\ntw\xc3"))
	require.NoError(t, err)
	assert.Equal(t, "tw", s.UnfinishedLine(), "the rest")
	for range 2 {
		require.NoError(t, s.Close())
	}
	assert.Equal(t, "one||tw\ufffd", strings.Join(lines, "|"), "the lines")
}

// A long line is split, and nothing is lost.
func TestLongLine(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	got := sanitize.Output(text)
	if strings.Count(got, "\n") != 3 || strings.ReplaceAll(got, "\n", "") != text {
		t.Errorf("%d bytes in %d lines", len(got), strings.Count(got, "\n")+1)
	}
}

// Dropped sequences take no memory, however long they are.
func TestMemory(t *testing.T) {
	s := sanitize.NewStream(func(string) {})
	piece := []byte(strings.Repeat("x", 1<<16))
	for _, begin := range []string{"\x1b]0;", "\x1bP", "\x1b[", "\x1b[1;", "\x1b ", "text", "\xf0\x9f", "\x1b_G"} {
		_, _ = s.Write([]byte(begin))
		for range 3 { // until the line buffer has its full size
			_, _ = s.Write(piece)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const pieces = 16
		for range pieces {
			_, _ = s.Write(piece)
		}
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) / pieces; took > 1<<18 { // one rendered line
			t.Errorf("after %q every piece takes %d bytes", begin, took)
		}
		_, _ = s.Write([]byte("\n"))
	}
}

func FuzzSafe(f *testing.F) {
	for _, attack := range attacktest.Attacks() {
		if len(attack.Text) < 500 {
			f.Add(attack.Text, 5)
		}
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		assert.Equal(t, "", attacktest.FindControl(sanitize.Line(text), 0), "Line leaves")
		assert.Equal(t, "", attacktest.FindControl(sanitize.Text(text), attacktest.LineEnds), "Text leaves")
		whole := sanitize.Output(text)
		assert.Equal(t, "", attacktest.FindControl(whole, attacktest.LineEnds|attacktest.Colours), "Colours leaves in %q", whole)
		for _, s := range []string{sanitize.Line(text), sanitize.Text(text)} {
			assert.Equal(t, strings.ReplaceAll(s, "\n", " "), sanitize.Line(s), "Line changes %q a second time", s)
		}
		assert.Equal(t, whole, sanitize.Output(whole), "Colours, a second time")
		at = min(max(at, 0), len(text))
		var b strings.Builder
		s := sanitize.NewStream(func(line string) { b.WriteString(line + "\n") })
		_, _ = s.Write([]byte(text[:at]))
		_ = s.UnfinishedLine()
		_, _ = s.Write([]byte(text[at:]))
		// Output replaces an incomplete character at the end.
		if got := b.String() + s.UnfinishedLine(); !strings.HasPrefix(whole, strings.TrimSuffix(got, "\x1b[m")) {
			t.Errorf("cut at %d it is\n%q, whole it is\n%q", at, got, whole)
		}
	})
}

// If IsUnchanged is true, the original text may be printed.
func TestIsUnchanged(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "plain": true, "two\nlines": true, "žluť 👨\u200d👩\u200d👧 👍🏽 ❤\ufe0f 🇩🇪": true,
		"a\tb": false, "a\x1b[2J": false, "a\u200db": false, "a\u200b": false, "\u202ea": false, "a\ufe0f\ufe0f": false, "👨\u200d\u200d👩": false,
	} {
		assert.Equal(t, want, sanitize.IsUnchanged(text), "%q", text)
	}
}
