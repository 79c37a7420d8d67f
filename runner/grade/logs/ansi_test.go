package logs

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestDropANSI holds it against the pattern of the official parsers.
func TestDropANSI(t *testing.T) {
	pattern := regexp.MustCompile(`\x1B(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])`)
	parts := []string{"\x1b", "\x1b[", "[", "31", ";", "m", "K", " ", "/", "?", "@", "Z", "\\", "]", "_", "~", "\x7f", "\n", "é"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		if got, want := dropANSI(b.String()), pattern.ReplaceAllString(b.String(), ""); got != want {
			t.Fatalf("of %q is left %q, want %q", b.String(), got, want)
		}
	}
}
