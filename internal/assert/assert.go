// Package assert reports failures of a test, which continues. The package require ends it.
package assert

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// NoError reports err, unless it is nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Equal reports the differences of got from want. The what is a format and its arguments; it
// may be left out, here and below.
func Equal[T any](t testing.TB, want, got T, what ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s(-want +got):\n%s", About(what), diff)
	}
}

// NoDiff reports a diff, of cmp.Diff.
func NoDiff(t testing.TB, diff string, what ...any) {
	t.Helper()
	if diff != "" {
		t.Errorf("%s\n%s", About(what), diff)
	}
}

// Error reports that there is no err.
func Error(t testing.TB, err error, what ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%sno error", About(what))
	}
}

// ErrorIs reports an err that is not target.
func ErrorIs(t testing.TB, err, target error, what ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%serror %v, want %v", About(what), err, target)
	}
}

// ErrorContains reports an err whose text does not have the part.
func ErrorContains(t testing.TB, err error, part string, what ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%serror %v, want %q in it", About(what), err, part)
	}
}

// Contains reports a text that does not have the part.
func Contains(t testing.TB, text, part string, what ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s%q is not in\n%s", About(what), part, text)
	}
}

// About returns the text of a what, and a colon.
func About(what []any) string {
	if len(what) == 0 {
		return ""
	}
	format, _ := what[0].(string)
	return fmt.Sprintf(format, what[1:]...) + ": "
}
