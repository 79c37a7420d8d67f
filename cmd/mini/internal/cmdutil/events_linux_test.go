package cmdutil

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/internal/sanitize/attacktest"
)

// publishEvents logs the events that publish sends to a bus, and returns the messages on stderr.
func publishEvents(t *testing.T, path string, out io.Writer, publish func(*events.Bus)) (messages string) {
	t.Helper()
	var stderr bytes.Buffer
	eventLog, err := OpenEventLog(path, Streams{Out: out, Err: &stderr}, nil)
	if err != nil {
		t.Fatal(err)
	}
	bus := events.NewBus()
	eventLog.Follow(bus, "", 0)
	publish(bus)
	bus.Close()
	eventLog.Close()
	return stderr.String()
}

// turns returns a function that publishes n turns.
func turns(n int) func(*events.Bus) {
	return func(b *events.Bus) {
		for i := range n {
			b.Publish(events.PhaseStarted{Phase: events.PhaseThinking, Step: i + 1})
		}
	}
}

// steps returns the step numbers of the turns in an event log.
func steps(t *testing.T, text string) (all []int) {
	t.Helper()
	for line := range strings.Lines(text) {
		e, err := events.Decode([]byte(line))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if turn, ok := e.Event.(events.PhaseStarted); ok {
			all = append(all, turn.Step)
		}
	}
	return all
}

func TestEventLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	if said := publishEvents(t, path, nil, turns(500)); said != "" {
		t.Errorf("said %q", said)
	}
	text, err := os.ReadFile(path)
	if err != nil || len(steps(t, string(text))) != 500 {
		t.Errorf("%d turns, %v", len(steps(t, string(text))), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// A log without events leaves no file.
	unused := filepath.Join(t.TempDir(), "events.jsonl")
	publishEvents(t, unused, nil, turns(0))
	if FileExists(unused) {
		t.Error("an empty file stays")
	}
	var out bytes.Buffer
	if said := publishEvents(t, "-", &out, turns(3)); said != "" || len(steps(t, out.String())) != 3 {
		t.Errorf("to stdout: %s, said %q", &out, said)
	}
	var none *EventLog
	none.Follow(events.NewBus(), "", 0)
	none.Close()
	if l, err := OpenEventLog("", Streams{}, nil); l != nil || err != nil {
		t.Errorf("without a name: %v, %v", l, err)
	}
}

func TestOpenEventLogErrors(t *testing.T) {
	dir := t.TempDir()
	old, fifo := filepath.Join(dir, "old"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(old, []byte("mine"), 0o600), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		old:                           old + " exists already; give another name, or - for stdout",
		dir:                           dir + " is a folder; name a file, or - for stdout",
		fifo:                          fifo + " has no reader; start the reader first",
		filepath.Join(dir, "no", "x"): "no such file or directory",
		filepath.Join(old, "x"):       "not a directory",
	} {
		_, err := OpenEventLog(path, Streams{}, nil)
		if err == nil || ExitCode(err) != ExitUsage || !strings.HasPrefix(err.Error(), "--events: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

// If the disk is full or the pipe is closed, the error is reported once.
func TestEventLogFullDisk(t *testing.T) {
	const want = "mini: no more events are written to /dev/full: no space left on device; the run continues\n"
	if said := publishEvents(t, "/dev/full", nil, turns(1000)); said != want {
		t.Errorf("said %q", said)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil { // as head does at its end
		t.Fatal(err)
	}
	if said := publishEvents(t, "-", w, turns(1000)); said != strings.NewReplacer("/dev/full", "stdout", "no space left on device", "broken pipe").Replace(want) {
		t.Errorf("said %q", said)
	}
	_ = w.Close()
}

// A full pipe does not block the run, and blocks Close only for closeTimeout. A slow reader
// receives all events that fit into the queue.
func TestEventLogSlowReader(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	begun := time.Now()
	said := publishEvents(t, fifo, nil, func(b *events.Bus) {
		turns(100_000)(b)
		if took := time.Since(begun); took > 2*time.Minute {
			t.Errorf("publishing took %s", took)
		}
	})
	if !strings.Contains(said, "the reader is too slow") || strings.Count(said, "\n") != 1 || time.Since(begun) > 3*time.Minute {
		t.Errorf("after %s: %q", time.Since(begun), said)
	}

	var got bytes.Buffer
	var reading sync.WaitGroup
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reading.Go(func() { _, _ = io.Copy(&got, r) })
	if said := publishEvents(t, "-", w, turns(200)); said != "" {
		t.Errorf("said %q", said)
	}
	_ = w.Close()
	reading.Wait()
	if n := len(steps(t, got.String())); n != 200 {
		t.Errorf("%d turns came through the pipe", n)
	}
}

// The event log contains no control characters, since stdout may be a terminal.
func TestEventLogIsSafeForTerminals(t *testing.T) {
	for _, attack := range attacktest.Attacks() {
		var out bytes.Buffer
		publishEvents(t, "-", &out, func(b *events.Bus) {
			b.Publish(events.TextDelta{Text: attack.Text})
			b.Publish(events.OutputChunk{Data: []byte(attack.Text)})
		})
		n := 0
		for line := range strings.Lines(out.String()) {
			e, err := events.Decode([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			if c, ok := e.Event.(events.OutputChunk); ok && string(c.Data) != attack.Text {
				t.Errorf("%s: the output is another one", attack.Name)
			}
			n++
		}
		if trouble := attacktest.FindControl(out.String(), attacktest.LineEnds); trouble != "" || n != 2 {
			t.Errorf("%s: %s", attack.Name, trouble)
		}
	}
}
