package scripted_test

import (
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
)

// TestDeltas checks that a reply is sent as deltas, thinking first.
func TestDeltas(t *testing.T) {
	s, err := scripted.Parse("x", []byte("- hello\n- {content: there, reasoning_content: hm}\n- {tool_calls: [ls]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.For("*")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hello", "(hm)there", ""} {
		got := ""
		ctx := model.WithDeltas(t.Context(), func(d model.Delta) {
			if got += d.Text; d.Reasoning != "" {
				got += "(" + d.Reasoning + ")"
			}
		})
		if _, err := m.Query(ctx, nil); err != nil || got != want {
			t.Errorf("deltas %q, want %q; %v", got, want, err)
		}
	}
}
