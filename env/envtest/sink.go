package envtest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// sinks: output goes where the command says, while it runs.
func sinks(t *testing.T, s suite) {
	b := s.fresh(t)
	t.Run("as it comes", func(t *testing.T) {
		b := box{b, t}
		var got enough
		start := time.Now()
		_, err := b.Execute(t.Context(), env.Command{Script: "echo first; sleep 60; echo late", Sink: &got, Timeout: 2 * time.Minute})
		// The first line is seen before the command ends, and ends it.
		if !errors.Is(err, env.ErrSink) || !errors.Is(err, errEnough) || string(got) != "first\n" || time.Since(start) > patience {
			t.Errorf("%q after %s, %v; want the sink's error", got, time.Since(start), err)
		}
		b.sh("true") // the sandbox lives
	})
	t.Run("whole", func(t *testing.T) {
		b := box{b, t}
		var got bytes.Buffer
		const size = 40 << 20
		r := b.run(env.Command{
			Script: fmt.Sprintf("seq -f %%07.0f 0 %d | head -c %d; exit 5", size/8+1, size),
			Sink:   &got, OutputLimit: env.SinkLimit, Timeout: time.Minute,
		})
		if got.Len() != size || r.Bytes != size || r.Truncated || len(r.Output) > 0 || r.Head != size || r.ExitCode != 5 {
			t.Fatalf("%d bytes in the sink and %d in the result, of %d; head %d, truncated %v, exit code %d",
				got.Len(), len(r.Output), r.Bytes, r.Head, r.Truncated, r.ExitCode)
		}
		checkNumbers(t, "log", got.Bytes(), 0)
	})
	t.Run("head and tail", func(t *testing.T) {
		b := box{b, t}
		var got bytes.Buffer
		const size, limit = 40 << 20, 20 << 20
		r := b.run(env.Command{
			Script: fmt.Sprintf("seq -f %%07.0f 0 %d | head -c %d", size/8+1, size),
			Sink:   &got, OutputLimit: limit, Timeout: time.Minute,
		})
		if got.Len() != limit || r.Bytes != size || !r.Truncated || r.Head != limit-env.MaxTail {
			t.Fatalf("%d bytes of %d, head %d, truncated %v", got.Len(), r.Bytes, r.Head, r.Truncated)
		}
		checkNumbers(t, "head", got.Bytes()[:r.Head], 0)
		checkNumbers(t, "tail", got.Bytes()[r.Head:], size-env.MaxTail)
	})
	t.Run("timeout", func(t *testing.T) {
		b := box{b, t}
		var got bytes.Buffer
		r := b.run(env.Command{Script: "echo before; sleep 60", Sink: &got, Timeout: time.Second})
		if !r.TimedOut || got.String() != "before\n" || r.Bytes != 7 {
			t.Errorf("timed out %v, %q in the sink, %d bytes", r.TimedOut, got.String(), r.Bytes)
		}
	})
}

// enough is a sink that has seen enough with its first line.
type enough []byte

var errEnough = errors.New("enough")

func (e *enough) Write(p []byte) (int, error) {
	*e = append(*e, p...)
	return 0, errEnough
}
