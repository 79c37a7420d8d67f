package envtest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// sinks: output is written to the sink while the command runs.
func sinks(t *testing.T, s suite) {
	b := s.start(t)
	t.Run("as it comes", func(t *testing.T) {
		b := sandbox{b, t}
		var got failingSink
		_, err := b.Execute(t.Context(), env.Command{Script: "echo first; sleep 600; echo late", Sink: &got, Timeout: 20 * time.Minute})
		// The first line arrives before the command ends, and the error cancels it.
		if !errors.Is(err, env.ErrSink) || !errors.Is(err, errSinkFull) || string(got) != "first\n" {
			t.Errorf("%q, %v; want the sink's error", got, err)
		}
		b.sh("true") // the sandbox is still usable
	})
	t.Run("whole", func(t *testing.T) { sandbox{b, t}.checkSink(3 << 20) })
}

// checkSink writes size bytes to a sink.
func (b sandbox) checkSink(size int) {
	b.t.Helper()
	var got bytes.Buffer
	r := b.run(env.Command{
		Script: fmt.Sprintf("seq -f %%07.0f 0 %d | head -c %d; exit 5", size/8+1, size),
		Sink:   &got, OutputLimit: env.SinkLimit, Timeout: 10 * time.Minute,
	})
	if got.Len() != size || r.Bytes != int64(size) || r.Truncated || len(r.Output) > 0 || r.Head != size || r.ExitCode != 5 {
		b.t.Fatalf("%d bytes in the sink and %d in the result, of %d; head %d, truncated %v, exit code %d",
			got.Len(), len(r.Output), r.Bytes, r.Head, r.Truncated, r.ExitCode)
	}
	checkNumbers(b.t, "log", got.Bytes(), 0)
}

// failingSink is a sink whose first Write returns an error.
type failingSink []byte

var errSinkFull = errors.New("sink is full")

func (s *failingSink) Write(p []byte) (int, error) {
	*s = append(*s, p...)
	return 0, errSinkFull
}
