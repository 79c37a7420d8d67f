// Package require ends tests whose preparations fail. Like t.Fatal, its functions must be called
// from the goroutine of the test.
package require

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
)

// NoError ends the test with err, unless err is nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal ends the test with the differences of got from want. The what is a format and its
// arguments; it may be left out.
func Equal[T any](t testing.TB, want, got T, what ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s(-want +got):\n%s", assert.About(what), diff)
	}
}
