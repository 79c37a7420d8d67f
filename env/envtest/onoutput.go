package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// outputRecorder records the chunks passed to Command.OnOutput.
type outputRecorder struct {
	t      *testing.T
	mu     sync.Mutex
	got    []byte
	seen   chan struct{} // closed when the output contains word
	word   string
	closed bool
}

func recordOutput(t *testing.T, word string) *outputRecorder {
	return &outputRecorder{t: t, word: word, seen: make(chan struct{})}
}

func (rec *outputRecorder) write(p []byte) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.closed {
		rec.t.Errorf("%.40q after Execute has returned", p)
	}
	if len(p) == 0 {
		rec.t.Error("an empty chunk")
	}
	wasSeen := bytes.Contains(rec.got, []byte(rec.word))
	rec.got = append(rec.got, p...)
	if rec.word != "" && !wasSeen && bytes.Contains(rec.got, []byte(rec.word)) {
		close(rec.seen)
	}
}

// close is called after Execute has returned. It returns the recorded output.
func (rec *outputRecorder) close() []byte {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.closed = true
	return rec.got
}

// onOutput: the output is passed to OnOutput while the command runs.
func onOutput(t *testing.T, s suite) {
	b := s.start(t)
	t.Run("as it comes", func(t *testing.T) {
		b := sandbox{b, t}
		rec := recordOutput(t, "first")
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("seen enough")
		go func() {
			select {
			case <-rec.seen: // before the command ends
				cancel(cause)
			case <-ctx.Done():
			}
		}()
		r, err := b.Execute(ctx, env.Command{Script: "echo first; sleep 600; echo late", Timeout: 20 * time.Minute, OnOutput: rec.write})
		if !errors.Is(err, cause) || string(rec.close()) != "first\n" || string(r.Output) != "first\n" {
			t.Errorf("saw %q, result %q, %v", rec.close(), r.Output, err)
		}
		b.sh("true") // the sandbox is still usable
	})
	t.Run("all that is kept", func(t *testing.T) {
		b := sandbox{b, t}
		for name, c := range map[string]env.Command{
			"nothing":    {Script: "true"},
			"failure":    {Script: "echo a; echo b >&2; exit 3"},
			"no UTF-8":   {Script: `printf '\377\000\303'`},
			"timeout":    {Script: "echo before; sleep 60", Timeout: 200 * time.Millisecond},
			"long":       {Script: "seq 1 100000"},
			"submission": {Script: "echo MARK; seq 1 100000", OutputLimit: env.MinOutputLimit, SubmissionMarkers: []string{"MARK"}},
			"two halves": {Script: "seq 1 100000", OutputLimit: env.MinOutputLimit},
			"no shell":   {Script: "x\x00y"},
		} {
			rec := recordOutput(t, "")
			c.OnOutput = rec.write
			r := b.run(c)
			if got := rec.close(); !bytes.Equal(got, r.Output) {
				t.Errorf("%s: saw %d bytes, %.40q, and kept are %d, %.40q", name, len(got), got, len(r.Output), r.Output)
			}
			if name == "two halves" && (!r.Truncated || len(r.Output) != env.MinOutputLimit) {
				t.Errorf("%s: %d bytes, truncated %v", name, len(r.Output), r.Truncated)
			}
		}
	})
	t.Run("beside a sink", func(t *testing.T) {
		b := sandbox{b, t}
		rec := recordOutput(t, "")
		var sink bytes.Buffer
		b.run(env.Command{Script: "seq 1 10000", OnOutput: rec.write, Sink: &sink})
		if got := rec.close(); !bytes.Equal(got, sink.Bytes()) || len(got) != 48894 {
			t.Errorf("saw %d bytes, and the sink got %d", len(got), sink.Len())
		}
	})
	t.Run("of the next command", func(t *testing.T) {
		b := sandbox{b, t}
		// Later output of background processes is not reported, neither now nor with
		// the next command.
		for i := range 5 {
			rec := recordOutput(t, "")
			r := b.run(env.Command{Script: fmt.Sprintf("(sleep 0.0%d; for n in 1 2 3 4 5 6 7 8 9; do echo late; sleep 0.01; done) & echo %d", i%5, i), OnOutput: rec.write})
			if got := rec.close(); !bytes.Equal(got, r.Output) {
				t.Errorf("saw %.60q, kept %.60q", got, r.Output)
			}
		}
	})
}
