package retry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/retry"
)

// deltaModel sends deltas, and then fails or answers.
type deltaModel struct {
	deltas   [][]model.Delta // of each request; the last request succeeds
	requests int
}

func (m *deltaModel) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	deltas := m.deltas[m.requests]
	m.requests++
	for _, d := range deltas {
		if listener := model.DeltaListener(ctx); listener != nil {
			listener(d)
		}
	}
	if m.requests < len(m.deltas) {
		return model.Reply{Tries: 1}, down
	}
	return model.Reply{Tries: 1}, nil
}

// TestRestart checks that a failed request voids its deltas before the wait.
func TestRestart(t *testing.T) {
	text := func(s string) model.Delta { return model.Delta{Text: s} }
	tests := map[string]struct {
		deltas [][]model.Delta
		want   string
	}{
		"at once":                  {[][]model.Delta{{text("a"), text("b")}}, "a b"},
		"after half a reply":       {[][]model.Delta{{text("a")}, {text("a"), text("b")}}, "a ! a b"},
		"after a thought":          {[][]model.Delta{{{Reasoning: "t"}}, {text("b")}}, "(t) ! b"},
		"after nothing":            {[][]model.Delta{nil, {text("b")}}, "b"},
		"twice, the second silent": {[][]model.Delta{{text("a")}, nil, {text("b")}}, "a ! b"},
		"after its own":            {[][]model.Delta{{text("a"), {Restart: true}}, {text("b")}}, "a ! b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				start := time.Now()
				ctx := model.WithDeltas(t.Context(), func(d model.Delta) {
					switch {
					case d.Restart:
						got = append(got, "!")
						if time.Since(start) > 0 && len(got) == 2 {
							t.Error("the deltas were voided only after the wait")
						}
					case d.Reasoning != "":
						got = append(got, fmt.Sprintf("(%s)", d.Reasoning))
					default:
						got = append(got, d.Text)
					}
				})
				for _, ctx := range []context.Context{t.Context(), ctx} {
					m := retry.New(&deltaModel{deltas: test.deltas}, retry.Policy{})
					start = time.Now()
					if _, err := m.Query(ctx, nil); err != nil {
						t.Fatal(err)
					}
				}
				if s := strings.Join(got, " "); s != test.want {
					t.Errorf("%s, want %s", s, test.want)
				}
			})
		})
	}
}
