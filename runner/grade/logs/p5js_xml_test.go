package logs

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// dropXMLSlowly is the rule, word by word: the leftmost tag that has an end, and
// then from the start again.
func dropXMLSlowly(text string) string {
	for at := 0; at < len(text); at++ {
		if text[at] != '<' {
			continue
		}
		name, closing, n := readTag([]byte(text[at:]))
		if closing || len(name) == 0 {
			continue
		}
		tag, end := "<"+string(name)+">", "</"+string(name)+">"
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

// TestDropXML holds the one pass against the rule, on texts that are all tags
// and parts of tags.
func TestDropXML(t *testing.T) {
	parts := []string{"<a>", "</a>", "<b>", "</b>", "<ab>", "</ab>", "<é>", "</é>", "<", "</", "/", "a", "b", "é", ">", " ", "\n"}
	rng := rand.New(rand.NewPCG(1, 2))
	dropped := 0
	for range 200_000 {
		var b strings.Builder
		for range rng.IntN(24) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		text := b.String()
		want := dropXMLSlowly(text)
		got, err := dropXML([]byte(text))
		if err != nil || got != want {
			t.Fatalf("of %q is left %q, %v; want %q", text, got, err, want)
		}
		if got != text {
			dropped++
		}
	}
	if dropped < 10_000 {
		t.Errorf("only %d texts had an element", dropped)
	}
}

func TestDropXMLBoundsItsMemory(t *testing.T) {
	var b strings.Builder
	for i := range maxTags + 1 {
		b.WriteString("<x")
		for ; i > 0; i /= 10 {
			b.WriteByte(byte('0' + i%10))
		}
		b.WriteString(">")
	}
	if _, err := dropXML([]byte(b.String())); err == nil {
		t.Error("any number of different tags is remembered")
	}
}
