package events_test

import (
	"os"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/events"
)

// The examples in docs/events.md are lines as Encode writes them, with at least
// one of every kind.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	seen, last := map[events.Kind]bool{}, uint64(0)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, `{"seq":`) {
			continue
		}
		e, err := events.Decode([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if again, err := events.Encode(e); err != nil || string(again) != line {
			t.Errorf("the manual has %sit is     %s%v", line, again, err)
		}
		if e.Seq <= last {
			t.Errorf("%d after %d", e.Seq, last)
		}
		seen[e.Event.Kind()], last = true, e.Seq
	}
	for _, e := range all {
		if !seen[e.Kind()] || !strings.Contains(string(text), "**"+string(e.Kind())+"** (`") {
			t.Errorf("the manual does not show %s", e.Kind())
		}
	}
}
