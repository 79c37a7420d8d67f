package logs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// withoutXMLSlowly is a simple implementation of withoutXML. It removes the leftmost element and
// then starts again.
func withoutXMLSlowly(text string) string {
	for at := 0; at < len(text); at++ {
		m := xmlTag.FindStringSubmatch(text[at:])
		if m == nil || m[1] != "" {
			continue
		}
		tag, end, n := m[0], "</"+m[2]+">", len(m[0])
		i := strings.Index(text[at+n:], end)
		if i < 0 {
			continue
		}
		i += at + n + len(end)
		again := strings.Repeat(tag, strings.Count(text[at:i], tag)-1)
		text = text[:at] + again + text[i:]
		at = -1
	}
	return text
}

// TestWithoutXML compares withoutXML with withoutXMLSlowly, on texts of tags and parts of tags.
func TestWithoutXML(t *testing.T) {
	parts := []string{"<a>", "</a>", "<b>", "</b>", "<ab>", "</ab>", "<é>", "</é>", "<", "</", "/", "a", "b", "é", ">", " ", "\n"}
	rng := rand.New(rand.NewPCG(1, 2))
	dropped := 0
	for range 20_000 {
		var b strings.Builder
		for range rng.IntN(24) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		text := b.String()
		want := withoutXMLSlowly(text)
		got, err := withoutXML(text)
		if err != nil || got != want {
			t.Fatalf("of %q is left %q, %v; want %q", text, got, err, want)
		}
		if got != text {
			dropped++
		}
	}
	if dropped < 1_000 {
		t.Errorf("only %d texts had an element", dropped)
	}
}

func TestWithoutXMLBoundsItsWork(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, "<x%d>", i)
	}
	if _, err := withoutXML(b.String()); !errors.Is(err, errXML) {
		t.Errorf("the error is %v", err)
	}
}
