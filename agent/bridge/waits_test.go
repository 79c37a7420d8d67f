package bridge

import (
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/model"
)

// TestWaits: the clock is paused only while every open request waits.
func TestWaits(t *testing.T) {
	paused := 0
	w := waits{begin: func() func() {
		paused++
		return func() { paused-- }
	}}
	check := func(what string, want int) {
		t.Helper()
		assert.Equal(t, want, paused, "%s: pauses", what)
	}
	first, firstDone := w.track(t.Context())
	check("one works", 0)
	firstEnd := model.BeginPause(first)
	check("the only one waits", 1)
	second, secondDone := w.track(t.Context())
	check("another works", 0)
	secondEnd := model.BeginPause(second)
	check("both wait", 1)
	secondEnd()
	check("one waits, one works", 0)
	secondDone()
	check("the one that is left waits", 1)
	firstEnd()
	firstDone()
	check("none", 0)
}
