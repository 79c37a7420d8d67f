package main

import (
	"errors"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"You are a clerk. Ask mini-tool stock NAME: says how many there are of a thing.",
		`there is no \"nails\" here`, `"returncode":1`,
		`"output":"90\n"`, `"details":{"nail":90}`, `[0] 90`,
		"Submitted after 3 steps",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// failingWriter is a writer that always fails.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteError(t *testing.T) {
	if err := run(t.Context(), failingWriter{}); err == nil || err.Error() != "disk full" {
		t.Error(err)
	}
}
