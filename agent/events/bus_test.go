package events_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// short writes an event in short: a letter for its kind, and its text.
func short(e events.Event) string {
	switch e := events.Content(e).(type) {
	case events.PhaseStarted:
		return fmt.Sprintf("t%d", e.Step)
	case events.TextDelta:
		s := "d" + e.Text
		if e.Thinking {
			s = "h" + e.Text
		}
		if e.Restart {
			s = "!" + s
		}
		return s
	case events.OutputChunk:
		return "o" + string(e.Data)
	case trajectories.Outcome:
		return "E" + e.ExitStatus
	case events.Dropped:
		return fmt.Sprintf("L%d", e.Count)
	}
	return string(e.Kind())
}

// long returns the event with the given short form, in step 1.
func long(s string) events.Event {
	rest := s[1:]
	switch s[0] {
	case 't':
		step := 0
		_, _ = fmt.Sscan(rest, &step)
		return events.PhaseStarted{Phase: events.PhaseThinking, Step: step}
	case 'd':
		return events.TextDelta{Step: 1, Text: rest}
	case 'h':
		return events.TextDelta{Step: 1, Text: rest, Thinking: true}
	case '!':
		return events.TextDelta{Step: 1, Text: rest[1:], Restart: true}
	case 'o':
		return events.OutputChunk{Step: 1, Data: []byte(rest)}
	}
	return events.Recorded{Data: trajectories.Outcome{ExitStatus: rest}}
}

// drain returns the queued events of a closed subscription in short and checks
// their numbers.
func drain(t *testing.T, s *events.Subscription, published uint64) string {
	t.Helper()
	var got []string
	last := uint64(0)
	for e := range s.All(t.Context()) {
		if e.Seq <= last || e.Seq > published || e.Time.IsZero() {
			t.Errorf("event %d after %d, at %v", e.Seq, last, e.Time)
		}
		last = e.Seq
		got = append(got, short(e.Event))
	}
	assert.Equal(t, published, last, "the last")
	return strings.Join(got, " ")
}

func TestQueue(t *testing.T) {
	tests := map[string]struct {
		size      int
		published string
		want      string
	}{
		"room":                             {9, "t1 da db ox oy t2 E", "t1 da db ox oy t2 E"},
		"nothing":                          {3, "", ""},
		"pieces are joined":                {3, "t1 da db dc dd", "t1 da dbcd"},
		"outputs are joined":               {2, "t1 oa ob oc", "t1 oabc"},
		"thinking is not merged with text": {2, "da hb hc", "da hbc"},
		"thought, text, thought":           {2, "ha db hc", "L1 db hc"},
		"a restart is not joined":          {2, "da db !dc dd", "L1 db !dcd"},
		"pieces go first, the oldest":      {4, "t1 da t2 ob t3 t4", "t1 L1 t2 L1 t3 t4"},
		"a run of losses is one":           {4, "t1 da ob t2 t3 t4", "t1 L2 t2 t3 t4"},
		"then the oldest of the others":    {2, "t1 t2 t3 t4 t5", "L3 t4 t5"},
		"the end stays":                    {1, "t1 E t2 t3", "L1 E L2"},
		"the end, and what follows":        {2, "t1 E t2 t3 da", "L1 E L1 t3 L1"},
		"the newest of ends":               {2, "Ea Eb Ec Ed", "L2 Ec Ed"},
		"one place":                        {1, "t1 da db t2", "L3 t2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := events.NewBus()
			s, other := b.Subscribe(test.size), b.Subscribe(100)
			n := uint64(0)
			for _, e := range strings.Fields(test.published) {
				b.Publish(long(e))
				n++
			}
			b.Close()
			assert.Equal(t, test.want, drain(t, s, n))
			assert.Equal(t, test.published, drain(t, other, n), "who keeps up gets")
		})
	}
}

func formatError(step int, text string) events.Event {
	return events.Recorded{Step: step, Data: trajectories.Message{Message: model.Message{Content: text}, Cause: trajectories.CauseFormatError}}
}

// A queue of long pieces is bounded in bytes.
func TestQueueBytes(t *testing.T) {
	b := events.NewBus()
	s := b.Subscribe(0)
	chunk := make([]byte, 64<<10)
	const n = 1000
	for range n {
		b.Publish(events.OutputChunk{Step: 1, Data: chunk})
	}
	b.Publish(formatError(1, strings.Repeat("x", events.MaxQueueBytes+1)))
	b.Publish(long("E"))
	b.Close()
	if got := drain(t, s, n+2); got != "L1000 L1 E" && got != "L1001 E" {
		t.Errorf("after a reply that is too long: %s", got)
	}
	b = events.NewBus()
	s = b.Subscribe(0)
	for range n {
		b.Publish(events.OutputChunk{Step: 1, Data: chunk})
	}
	b.Close()
	kept, lost := 0, 0
	for e := range s.All(t.Context()) {
		if l, ok := e.Event.(events.Dropped); ok {
			lost += l.Count
		} else {
			kept++
		}
	}
	if kept+lost != n || kept < 50 || kept*len(chunk) > events.MaxQueueBytes {
		t.Errorf("%d kept, %d lost", kept, lost)
	}
}

// Many goroutines publish and read. The events of each publisher stay in order,
// and all are accounted for.
func TestConcurrent(t *testing.T) {
	b := events.NewBus()
	const publishers, each, readers = 8, 500, 5
	var all, readersDone sync.WaitGroup
	for i := range readers {
		s := b.Subscribe(10 + i*1000)
		readersDone.Go(func() {
			got, newest := 0, map[string]int{}
			for e := range s.All(context.Background()) {
				got++
				switch e := e.Event.(type) {
				case events.Dropped:
					got += e.Count - 1
				case events.Recorded:
					m, ok := e.Data.(trajectories.Message)
					if !ok || e.Step <= newest[m.Content] {
						t.Errorf("step %d after %d: %v", e.Step, newest[m.Content], e.Data)
					}
					newest[m.Content] = e.Step
				}
			}
			assert.Equal(t, publishers*each, got, "accounts")
		})
	}
	for p := range publishers {
		all.Go(func() {
			for i := range each {
				b.Publish(formatError(i+1, fmt.Sprint(p)))
			}
		})
	}
	all.Wait()
	b.Close()
	readersDone.Wait()
}

func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := events.NewBus()
		s := b.Subscribe(0)
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		got := make([]error, 3)
		var waiting sync.WaitGroup
		for i := range got {
			waiting.Go(func() { _, got[i] = s.Next(ctx) })
		}
		synctest.Wait()
		b.Publish(long("t1"))
		synctest.Wait()
		cancel(stop)
		waiting.Wait()
		got = slices.DeleteFunc(got, func(err error) bool { return err == nil })
		if len(got) != 2 || !errors.Is(got[0], stop) || !errors.Is(got[1], stop) {
			t.Errorf("of three readers of one event: %v", got)
		}

		// All readers are told of the end after they have read the queue.
		b.Publish(long("t2"))
		b.Publish(long("t3"))
		b.Close()
		b.Close()
		b.Publish(long("t4"))
		ends := 0
		for range 4 {
			if _, err := s.Next(t.Context()); errors.Is(err, io.EOF) {
				ends++
			}
		}
		assert.Equal(t, 2, ends, "of 4 reads are at the end, of two events")
		_, err := b.Subscribe(0).Next(t.Context())
		assert.ErrorIs(t, err, io.EOF, "subscribed to a closed bus")
	})
}

// Subscribers do not receive events without a line.
func TestPublishWithoutLine(t *testing.T) {
	b := events.NewBus()
	s := b.Subscribe(0)
	b.Publish(events.PhaseStarted{Phase: events.PhaseThinking}) // goes on
	b.Publish(events.PhaseStarted{Phase: events.PhaseRunning})  // another agent
	b.Publish(events.PhaseStarted{Phase: events.PhaseClosing})
	b.Publish(events.Recorded{Data: trajectories.Call{}})
	b.Publish(events.Recorded{Data: trajectories.Message{Cause: trajectories.CauseObservation}})
	b.Publish(events.Recorded{Data: trajectories.Execution{ExitCodeUnknown: true}})
	b.Publish(long("E"))
	b.Close()
	assert.Equal(t, "E", drain(t, s, 1), "published")
}

func TestUnsubscribe(t *testing.T) {
	b := events.NewBus()
	defer b.Close()
	s, other := b.Subscribe(0), b.Subscribe(0)
	b.Publish(long("t1"))
	s.Close()
	s.Close()
	b.Publish(long("t2"))
	_, err := s.Next(t.Context())
	assert.ErrorIs(t, err, io.EOF, "after its end")
	if !b.HasSubscribers() {
		t.Error("the other one is forgotten")
	}
	other.Close()
	if b.HasSubscribers() {
		t.Error("the bus reports a subscriber")
	}
}

func TestNilBus(t *testing.T) {
	var b *events.Bus
	b.Publish(long("t1"))
	b.Close()
	if b.HasSubscribers() || b.DeltaFunc(1) != nil {
		t.Error("a nil bus wants events")
	}
	watch, end := b.OutputFunc(1)
	if watch != nil {
		t.Error("a nil bus watches")
	}
	end()
	_, err := b.Subscribe(0).Next(t.Context())
	assert.ErrorIs(t, err, io.EOF, "a nil bus has events")
}

func TestDeltaFunc(t *testing.T) {
	b := events.NewBus()
	s := b.Subscribe(0)
	tell := b.DeltaFunc(1)
	for _, d := range []model.Delta{{Reasoning: "a"}, {Text: "b"}, {Restart: true}, {Reasoning: "c", Text: "d", Restart: true}, {}} {
		tell(d)
	}
	b.Close()
	got := ""
	for e := range s.All(t.Context()) {
		got += short(e.Event) + " "
		if d, ok := e.Event.(events.TextDelta); ok && d.Restart && d.Thinking {
			got += "h "
		}
	}
	assert.Equal(t, "ha db !d !hc h dd ", got, "published")
}

// Chunks contain whole characters.
func TestOutputFunc(t *testing.T) {
	tests := map[string]struct{ pieces, want []string }{
		"plain":           {[]string{"ab", "c"}, []string{"ab", "c"}},
		"cut in two":      {[]string{"a\xc3", "\xa9b"}, []string{"a", "éb"}},
		"cut in four":     {[]string{"\xf0", "\x9f", "\x98", "\x80"}, []string{"😀"}},
		"cut at the end":  {[]string{"a\xe2\x82"}, []string{"a", "\xe2\x82"}},
		"no UTF-8 at all": {[]string{"\xff\xfe", "\x80\x80\x80\x80"}, []string{"\xff\xfe", "\x80\x80\x80\x80"}},
		"torn, and none":  {[]string{"\xe2\x82", "x"}, []string{"\xe2\x82x"}},
	}
	for name, test := range tests {
		b := events.NewBus()
		s := b.Subscribe(0)
		watch, end := b.OutputFunc(1)
		for _, p := range test.pieces {
			shown := []byte(p)
			watch(shown)
			clear(shown) // the sandbox reuses the slice
		}
		end()
		b.Close()
		var got []string
		for e := range s.All(t.Context()) {
			got = append(got, short(e.Event)[1:])
		}
		assert.Equal(t, fmt.Sprintf("%q", test.want), fmt.Sprintf("%q", got), "%s", name)
	}
}

// The examples in docs/events.md are lines as Encode writes them, with at least
// one of every kind.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/events.md")
	require.NoError(t, err)
	seen, last := map[events.Kind]bool{}, uint64(0)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, `{"seq":`) {
			continue
		}
		e, err := events.Decode([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if again, err := events.Encode(e); err != nil || string(again) != line {
			t.Errorf("the manual has %sit is     %s%v", line, again, err)
		}
		if e.Seq <= last {
			t.Errorf("%d after %d", e.Seq, last)
		}
		seen[e.Event.Kind()], last = true, e.Seq
	}
	for _, e := range all {
		if !seen[e.Kind()] || !strings.Contains(string(text), "**"+string(e.Kind())+"** (`") {
			t.Errorf("the manual does not show %s", e.Kind())
		}
	}
}
