package verdicts_test

import (
	"testing"
	"time"

	"github.com/minibench/mini/runner/verdicts"
)

func TestIndex(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var set verdicts.Set
	add := func(name, id, model string, repetition, size int, class verdicts.Class, written time.Duration) {
		set.Verdicts = append(set.Verdicts, verdicts.Verdict{Path: name, Written: now.Add(written), Record: verdicts.Record{
			Instance: id, Model: model, Repetition: repetition, Class: class, Basis: verdicts.Basis{PatchBytes: size},
		}})
	}
	add("gold", "a", verdicts.GoldModel, 0, 4, verdicts.Resolved, 9)
	add("noop", "a", verdicts.NoopModel, 0, 4, verdicts.Unresolved, 9)
	add("old", "a", "m", 0, 4, verdicts.Unresolved, 1)
	add("new", "a", "m", 0, 4, verdicts.Resolved, 2)
	add("other patch", "a", "m", 0, 5, verdicts.TimedOut, 3)
	add("second", "a", "m", 2, 4, verdicts.Empty, 0)
	add("b", "b", "m", 1, 4, verdicts.Resolved, 0)
	index := set.Index()
	for _, tt := range []struct {
		id               string
		repetition, size int
		class            verdicts.Class
		want             string
	}{
		{"a", 1, 4, "", "new"},
		{"a", 0, 4, "", "new"},
		{"a", 1, 4, verdicts.Unresolved, "old"},
		{"a", 1, 4, verdicts.Empty, ""},
		{"a", 1, 5, "", "other patch"},
		{"a", 2, 4, "", "second"},
		{"b", 0, 4, "", "b"},
		{"c", 0, 4, "", ""},
	} {
		got := ""
		if v := index.Find(tt.id, tt.repetition, tt.size, tt.class); v != nil {
			got = v.Path
		}
		if got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
	var names string
	for _, v := range index.Newest() {
		names += v.Path + ";"
	}
	if names != "other patch;second;b;" {
		t.Error(names)
	}
}
