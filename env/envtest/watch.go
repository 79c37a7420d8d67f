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

// audience watches outputs.
type audience struct {
	t    *testing.T
	mu   sync.Mutex
	got  []byte
	seen chan struct{} // closed when word was seen
	word string
	over bool
}

func watches(t *testing.T, word string) *audience {
	return &audience{t: t, word: word, seen: make(chan struct{})}
}

func (a *audience) see(p []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		a.t.Errorf("%.40q after the end", p)
	}
	if len(p) == 0 {
		a.t.Error("an empty piece")
	}
	before := bytes.Contains(a.got, []byte(a.word))
	a.got = append(a.got, p...)
	if a.word != "" && !before && bytes.Contains(a.got, []byte(a.word)) {
		close(a.seen)
	}
}

// end is called when Execute has returned; it is all that was seen.
func (a *audience) end() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.got
}

// watching: the output is shown while the command runs.
func watching(t *testing.T, s suite) {
	b := s.fresh(t)
	t.Run("as it comes", func(t *testing.T) {
		b := box{b, t}
		a := watches(t, "first")
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("seen enough")
		go func() {
			select {
			case <-a.seen: // before the command ends, which it then does
				cancel(enough)
			case <-ctx.Done():
			}
		}()
		begun := time.Now()
		r, err := b.Execute(ctx, env.Command{Script: "echo first; sleep 60; echo late", Timeout: 2 * time.Minute, Watch: a.see})
		if !errors.Is(err, enough) || string(a.end()) != "first\n" || string(r.Output) != "first\n" || time.Since(begun) > patience {
			t.Errorf("saw %q, result %q after %s, %v", a.end(), r.Output, time.Since(begun), err)
		}
		b.sh("true") // the sandbox lives
	})
	t.Run("all that is kept", func(t *testing.T) {
		b := box{b, t}
		for name, c := range map[string]env.Command{
			"nothing":    {Script: "true"},
			"failure":    {Script: "echo a; echo b >&2; exit 3"},
			"no UTF-8":   {Script: `printf '\377\000\303'`},
			"timeout":    {Script: "echo before; sleep 60", Timeout: time.Second},
			"long":       {Script: "seq 1 100000"},
			"submission": {Script: "echo MARK; seq 1 100000", OutputLimit: env.MinOutputLimit, Markers: []string{"MARK"}},
			"two halves": {Script: "seq 1 100000", OutputLimit: env.MinOutputLimit},
			"no shell":   {Script: "x\x00y"},
		} {
			a := watches(t, "")
			c.Watch = a.see
			r := b.run(c)
			if got := a.end(); !bytes.Equal(got, r.Output) {
				t.Errorf("%s: saw %d bytes, %.40q, and kept are %d, %.40q", name, len(got), got, len(r.Output), r.Output)
			}
			if name == "two halves" && (!r.Truncated || len(r.Output) != env.MinOutputLimit) {
				t.Errorf("%s: %d bytes, truncated %v", name, len(r.Output), r.Truncated)
			}
		}
	})
	t.Run("beside a sink", func(t *testing.T) {
		b := box{b, t}
		a := watches(t, "")
		var sink bytes.Buffer
		b.run(env.Command{Script: "seq 1 10000", Watch: a.see, Sink: &sink})
		if got := a.end(); !bytes.Equal(got, sink.Bytes()) || len(got) != 48894 {
			t.Errorf("saw %d bytes, and the sink got %d", len(got), sink.Len())
		}
	})
	t.Run("of the next command", func(t *testing.T) {
		b := box{b, t}
		// What writes on in the background is not shown, then or later.
		for i := range 20 {
			a := watches(t, "")
			r := b.run(env.Command{Script: fmt.Sprintf("(sleep 0.0%d; for n in 1 2 3 4 5 6 7 8 9; do echo late; sleep 0.01; done) & echo %d", i%5, i), Watch: a.see})
			if got := a.end(); !bytes.Equal(got, r.Output) {
				t.Errorf("saw %.60q, kept %.60q", got, r.Output)
			}
		}
	})
}
