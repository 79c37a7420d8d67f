package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

var at = time.Date(2026, 11, 20, 9, 30, 0, 500_000_000, time.UTC)

var turn events.Event = events.PhaseStarted{Phase: events.PhaseThinking, Step: 1}

// all has one event of each kind, with all fields set.
var all = []events.Event{
	events.RunStarted{Task: "fix\n<it>", Instance: "a__b-1", Model: "m", Environment: "docker", Dir: "/testbed", Step: 3},
	events.PhaseStarted{Phase: events.PhaseScrubbing},
	events.Recorded{Data: trajectories.Scrub{OK: true, Prepared: true, ObjectsRemoved: 3, RefsRemoved: 2, Duration: trajectories.Seconds(time.Second)}},
	events.PhaseStarted{Phase: events.PhaseThinking, Step: 4},
	events.TextDelta{Step: 4, Text: "hé", Thinking: true, Restart: true},
	events.Recorded{
		Step: 4, Spent: trajectories.Spending{Usage: model.Usage{Prompt: 20}, Cost: 1.5},
		Data: trajectories.Message{
			Message: model.Message{Content: "t", Reasoning: "r"}, Cause: trajectories.CauseReply, Actions: []string{"ls"},
		},
		Call: &trajectories.Call{Model: "m-1", Usage: model.Usage{Prompt: 10, Completion: 2}, Cost: 0.5, Duration: trajectories.Seconds(time.Second)},
	},
	events.Recorded{Step: 4, Data: trajectories.CommandDecision{
		Command: "rm -rf /", Decision: trajectories.Decision{Action: trajectories.Deny, Reason: "no", By: "rule", Rule: "3"},
	}},
	events.PhaseStarted{Phase: events.PhaseRunning, Step: 4, Command: "ls", ByUser: true},
	events.OutputChunk{Step: 4, Data: []byte("text")},
	events.OutputChunk{Step: 4, Data: []byte{0xff, 0}},
	events.Recorded{Step: 4, Data: trajectories.Execution{
		Command: "ls", ByUser: true, ExitCode: 137, Signal: 9, TimedOut: true, Duration: trajectories.Seconds(time.Second / 4),
		Bytes: 9, Truncated: true, Head: 4, Exception: "x",
	}},
	events.Recorded{Step: 4, Data: trajectories.Message{Message: model.Message{Content: "x"}, Cause: trajectories.CauseFormatError}},
	events.Recorded{Step: 4, Data: trajectories.Message{Message: model.Message{Content: "no"}, Cause: trajectories.CauseRejection}},
	events.LimitReached{Limit: events.LimitCost, Steps: 50, Cost: 3, Raised: true},
	events.Recorded{Step: 4, Data: trajectories.ToolCall{
		Name: "note", Args: []string{"add", "x"}, ExitCode: 2, Duration: trajectories.Seconds(time.Second), Details: []byte(`{"id":1}`),
	}},
	events.FilesChanged{Step: 4, Files: []events.ChangedFile{{Name: "a.py", Added: 1, Removed: 2}, {Name: "b", Added: -1, Removed: -1}}, More: 12, Patch: "+x\n"},
	events.ChildProgress{Step: 4, Child: 2, Depth: 1, Task: "find it", Command: "ls", ExitStatus: "Submitted", Steps: 3, Cost: 0.5},
	events.Recorded{Step: 4, Data: trajectories.Compaction{
		Policy: "elide", MessagesBefore: 9, MessagesAfter: 3, TokensBefore: 900, TokensAfter: 30, Fallback: "no summary",
	}},
	events.Recorded{Data: trajectories.Outcome{
		Class: trajectories.Submitted, ExitStatus: "Submitted", Submission: []byte("diff\xff"), Steps: 4, Start: at, End: at,
	}},
	events.Dropped{Count: 3},
}

func TestLines(t *testing.T) {
	kinds := map[events.Kind]bool{}
	for i, e := range all {
		kinds[e.Kind()] = true
		_, isPhase := e.(events.PhaseStarted) // not every line of a phase or record has all fields
		_, isRecord := e.(events.Recorded)
		for f := range reflect.TypeOf(e).NumField() {
			if !isPhase && !isRecord && reflect.ValueOf(e).Field(f).IsZero() {
				t.Errorf("%T: the field %s is not tested", e, reflect.TypeOf(e).Field(f).Name)
			}
		}
		s := events.Envelope{Seq: uint64(i + 1), Time: at, Event: e}
		line, err := events.Encode(s)
		require.NoError(t, err)
		if bytes.Count(line, []byte("\n")) != 1 || !bytes.HasSuffix(line, []byte("}\n")) {
			t.Errorf("line %q", line)
		}
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil || fields["type"] != string(e.Kind()) {
			t.Errorf("%s: %v", line, err)
		}
		got, err := events.Decode(line)
		if r, ok := e.(events.RunStarted); ok { // the event itself has the instance
			s.Instance = r.Instance
		}
		if diff := cmp.Diff(s, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		// In the file of a batch each line has the instance.
		s.Instance, s.Attempt = "a__b-1", 2
		line, err = events.Encode(s)
		if n := bytes.Count(line, []byte(`"instance":`)); err != nil || n != 1 {
			t.Errorf("%d names in %s, %v", n, line, err)
		}
		got, err = events.Decode(line)
		if diff := cmp.Diff(s, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	if len(kinds) != len(all)-1 || len(kinds) != 19 {
		t.Errorf("%d kinds are tested", len(kinds))
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, e := range []events.Event{nil, events.PhaseStarted{Phase: events.PhaseClosing}, events.Recorded{Data: trajectories.Call{}}} {
		if line, err := events.Encode(events.Envelope{Event: e}); err == nil {
			t.Errorf("%v has the line %s", e, line)
		}
	}
	s, err := events.Decode([]byte(`{"seq":3,"time":"2026-11-20T09:30:00Z","type":"of_tomorrow","x":1}`))
	if !errors.Is(err, events.ErrUnknownKind) || s.Seq != 3 || s.Event != nil {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = events.Decode([]byte(`{"seq":3,"time":"2026-11-20T09:30:00Z","type":"turn_started","step":1,"new":true}`))
	if err != nil || s.Event != turn {
		t.Errorf("a field of tomorrow: %+v, %v", s, err)
	}
	for _, bad := range []string{"", "{", "[]", `{"type":"turn_started","step":"x"}`, `{"type":"output_chunk","data":7}`} {
		if _, err := events.Decode([]byte(bad)); err == nil || errors.Is(err, events.ErrUnknownKind) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// fullDisk is a writer with limited space.
type fullDisk struct {
	strings.Builder
	left  int
	calls int
}

var errFull = errors.New("no space left on device")

func (f *fullDisk) Write(p []byte) (int, error) {
	f.calls++
	n := min(len(p), f.left)
	f.left -= n
	f.Builder.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestWriter(t *testing.T) {
	f := &fullDisk{left: 1 << 20}
	w := events.NewWriter(f)
	var writers sync.WaitGroup
	for range 10 {
		writers.Go(func() {
			for _, e := range all {
				assert.NoError(t, w.Write(events.Envelope{Seq: 1, Time: at, Event: e}))
			}
		})
	}
	writers.Wait()
	assert.Equal(t, 10*len(all), f.calls, "writes for events")
	for line := range strings.Lines(f.String()) {
		if _, err := events.Decode([]byte(line)); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}

	f = &fullDisk{left: 100}
	w = events.NewWriter(f)
	failures := 0
	for range 10 {
		if err := w.Write(events.Envelope{Seq: 1, Time: at, Event: turn}); errors.Is(err, errFull) {
			failures++
		}
	}
	if failures != 9 || f.calls != 2 {
		t.Errorf("%d failures, and %d writes", failures, f.calls)
	}
}
