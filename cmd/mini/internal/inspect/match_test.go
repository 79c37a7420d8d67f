package inspect

import (
	"strings"
	"testing"
)

func TestMatcher(t *testing.T) {
	long := strings.Repeat("x", 16<<10-3)
	for _, tt := range []struct {
		needle, text string
		at           int
	}{
		{"error", "an Error here", 3},
		{"Error", "an error here", -1},
		{"Error", "an Error here", 3},
		{"größe", "die GRÖSSE", -1}, // ß has no single capital
		{"öl", "das ÖL", 4},
		{"needle", long + "NEEDLE", len(long)}, // over the end of a piece
		{"a.c", "abc a.c", 4},
		{"x", "", -1},
	} {
		m := newMatcher(tt.needle)
		if at, n := m.find(tt.text); at != tt.at || at >= 0 && n == 0 {
			t.Errorf("%q in %.20q is at %d, want %d", tt.needle, tt.text, at, tt.at)
		}
		if m.in([]byte(tt.text)) != (tt.at >= 0) {
			t.Errorf("%q in the bytes of %.20q is told otherwise", tt.needle, tt.text)
		}
	}
	if newMatcher("") != nil {
		t.Error("nothing is something to find")
	}
}

func BenchmarkFold(b *testing.B) {
	text := []byte(strings.Repeat("some \x1b[31mred\x1b[0m line of output\twith a few words in it\n", 1<<20/60))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		indexFold(text, "a needle that is in none")
	}
}
