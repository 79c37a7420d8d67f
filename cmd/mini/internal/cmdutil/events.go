package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
)

// EventLog writes the events of --events. A nil EventLog discards them.
type EventLog struct {
	name   string // path of the file, or "stdout"
	writer *events.Writer
	file   *os.File  // nil for stdout
	stderr io.Writer // receives the first error

	ctx       context.Context //nolint:containedctx // the followers outlive the call that starts them
	cancel    context.CancelFunc
	followers sync.WaitGroup
	failOnce  sync.Once
}

// closeTimeout is how long Close waits at most for a pipe or file to accept the queued events.
const closeTimeout = 3 * time.Second

// eventQueueSize is the maximum number of events of one bus that are queued for writing. The bus
// also limits the size of the queue in bytes.
const eventQueueSize = 1 << 14

// AddEventsFlag adds --events.
func AddEventsFlag(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "events", "", "`FILE` (new) of JSON lines, - for stdout: what happens")
}

// OpenEventLog opens the event log of --events. Path "-" means stdout; for "" OpenEventLog returns
// nil. It creates a new file, or opens an existing pipe or device; an existing regular file or
// folder, or a pipe without a reader, is an error. redact removes secrets from a line; redact may
// be nil.
func OpenEventLog(path string, s Streams, redact func([]byte) []byte) (*EventLog, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // a nil log discards events
	}
	l := &EventLog{name: "stdout", stderr: s.Err}
	w := s.Out
	if path != "-" {
		var err error
		if l.file, err = createEventFile(path); err != nil {
			return nil, err
		}
		l.name, w = path, l.file
	}
	l.writer = events.NewWriter(redactingWriter{w, redact})
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// redactingWriter removes secrets from each line before writing it.
type redactingWriter struct {
	w      io.Writer
	redact func([]byte) []byte
}

// Write implements io.Writer.
func (r redactingWriter) Write(line []byte) (int, error) {
	clean := line
	if r.redact != nil {
		clean = r.redact(line)
	}
	_, err := r.w.Write(clean)
	return len(line), err
}

// createEventFile creates a new file, or opens a pipe or device without blocking.
func createEventFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: the user names the file
	if err == nil {
		return f, nil
	}
	info, statErr := os.Stat(path)
	switch {
	case statErr != nil:
		return nil, usage.Errorf("--events: %w", err)
	case info.IsDir():
		return nil, usage.Errorf("--events: %s is a folder; name a file, or - for stdout", text.Printable(path))
	case info.Mode().IsRegular():
		return nil, usage.Errorf("--events: %s exists already; give another name, or - for stdout", text.Printable(path))
	}
	// O_NONBLOCK: opening a pipe without a reader would block.
	f, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // G304: the user names the file
	switch {
	case errors.Is(err, syscall.ENXIO):
		return nil, usage.Errorf("--events: %s has no reader; start the reader first", text.Printable(path))
	case err != nil:
		return nil, usage.Errorf("--events: %w", err)
	}
	return f, nil
}

// Follow starts to write the events of bus in the background. The writing ends when bus or l is
// closed, or when a write fails. Follow adds instance and attempt to each event.
func (l *EventLog) Follow(bus *events.Bus, instance string, attempt int) {
	if l == nil {
		return
	}
	sub := bus.Subscribe(eventQueueSize)
	l.followers.Go(func() {
		defer sub.Close()
		for e := range sub.All(l.ctx) {
			e.Instance, e.Attempt = instance, attempt
			if err := l.writer.Write(e); err != nil {
				l.fail(err)
				return
			}
		}
	})
}

// fail reports the first write error. The run continues without the event log.
func (l *EventLog) fail(err error) {
	l.failOnce.Do(func() {
		if broken, ok := errors.AsType[*fs.PathError](err); ok {
			err = broken.Err
		}
		_, _ = fmt.Fprintf(l.stderr, "mini: no more events are written to %s: %s; the run continues\n",
			text.Printable(l.name), text.Printable(err.Error()))
	})
}

// NewBus returns a bus for one attempt, whose events l writes, and a function that closes it.
func (l *EventLog) NewBus(in datasets.Instance, attempt int) (bus *events.Bus, closeBus func()) {
	bus = events.NewBus()
	l.Follow(bus, in.ID, attempt)
	return bus, bus.Close
}

// Close waits at most closeTimeout until the events of all buses are written, closes the file and
// removes a regular file that is empty. The caller must have closed the buses.
func (l *EventLog) Close() {
	if l == nil {
		return
	}
	written := make(chan struct{})
	go func() { // ends when the followers end
		l.followers.Wait()
		close(written)
	}()
	timeout := time.NewTimer(closeTimeout)
	defer timeout.Stop()
	select {
	case <-written:
	case <-timeout.C:
		l.fail(errors.New("the reader is too slow"))
	}
	l.cancel()
	if l.file == nil {
		return
	}
	info, err := l.file.Stat()
	if err := l.file.Close(); err != nil { // also unblocks a follower that is writing
		l.fail(err)
	}
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 { // do not leave an empty file
		_ = os.Remove(l.name)
	}
}
