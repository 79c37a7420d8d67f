package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const want = `I look around.
[bash
ls
[
$ ls
  note
[steer] Be quick.
I read it.
[bash
cat note
[
$ cat note
  buy milk
It says: buy milk. Shall I?
[follow_up] No. How many lines are that?
One line.
[follow_up] Count again.
Interrupted: 11 messages, 5 steps
`

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, strings.ReplaceAll(out.String(), "```", "[")); diff != "" {
		t.Error(diff)
	}
}

// failingWriter is a writer that always fails.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// An error of the writer does not stop the agent, but run returns it.
func TestWriteError(t *testing.T) {
	if err := run(t.Context(), failingWriter{}); err == nil || err.Error() != "disk full" {
		t.Error(err)
	}
}
