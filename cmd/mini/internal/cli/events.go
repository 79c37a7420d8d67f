package cli

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
	"github.com/minibench/mini/runner/report"
)

// eventLog is where --events has lines written. A nil one is for nobody.
type eventLog struct {
	name  string
	lines *events.Writer
	file  *os.File  // nil where it is not ours
	tell  io.Writer // of what is wrong, once

	ctx    context.Context //nolint:containedctx // of the followers, which outlive the call that starts one
	cancel context.CancelFunc
	wait   sync.WaitGroup
	once   sync.Once
}

// eventsPatience is how long the end of mini waits for who reads the events.
const eventsPatience = 3 * time.Second

// eventsQueue is how many events may be ahead of the file. They are few: what
// fills a queue is bounded in bytes before.
const eventsQueue = 1 << 14

// eventsFlag is --events.
func eventsFlag(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "events", "", "`FILE` (new) of JSON lines, - for stdout: what happens")
}

// openEvents makes the file that --events names; "-" is stdout, and nil is
// returned where there is no name. A file that is there is not touched, unless it
// is a pipe or a device.
func openEvents(path string, s Streams, redact func([]byte) []byte) (*eventLog, error) {
	var l *eventLog
	switch path {
	case "":
		return nil, nil //nolint:nilnil // nobody wants a log, and nil is one
	case "-":
		l = &eventLog{name: "stdout", lines: events.NewWriter(redacting{s.Out, redact})}
	default:
		f, err := createEvents(path)
		if err != nil {
			return nil, err
		}
		l = &eventLog{name: path, lines: events.NewWriter(redacting{f, redact}), file: f}
	}
	l.tell = s.Err
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// redacting writes lines without the keys of this machine.
type redacting struct {
	w      io.Writer
	redact func([]byte) []byte
}

// Write implements io.Writer.
func (r redacting) Write(line []byte) (int, error) {
	clean := line
	if r.redact != nil {
		clean = r.redact(line)
	}
	if _, err := r.w.Write(clean); err != nil {
		return 0, err
	}
	return len(line), nil
}

func createEvents(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: it is the user's word
	if err == nil {
		return f, nil
	}
	info, missing := os.Stat(path)
	switch {
	case missing != nil:
		return nil, usagef("--events: %w", err)
	case info.IsDir():
		return nil, usagef("--events: %s is a folder; name a file, or - for stdout", report.Printable(path))
	case info.Mode().IsRegular():
		return nil, usagef("--events: %s is there already; give another name, or - for stdout", report.Printable(path))
	}
	// Without waiting: a pipe that nobody reads would hold up the start.
	f, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // G304: likewise
	switch {
	case errors.Is(err, syscall.ENXIO):
		return nil, usagef("--events: nobody reads from %s; start its reader first", report.Printable(path))
	case err != nil:
		return nil, usagef("--events: %w", err)
	}
	return f, nil
}

// follow writes what is published on a bus from now on, until the bus is closed.
// instance and attempt say whose events these are, where there are several.
func (l *eventLog) follow(bus *events.Bus, instance string, attempt int) {
	if l == nil {
		return
	}
	sub := bus.Subscribe(eventsQueue)
	l.wait.Go(func() {
		defer sub.Close()
		for e := range sub.All(l.ctx) {
			e.Instance, e.Attempt = instance, attempt
			if err := l.lines.Write(e); err != nil {
				l.failed(err)
				return
			}
		}
	})
}

// failed says once that there will be no more events. The work goes on.
func (l *eventLog) failed(err error) {
	l.once.Do(func() {
		if broken, ok := errors.AsType[*fs.PathError](err); ok {
			err = broken.Err
		}
		_, _ = fmt.Fprintf(l.tell, "mini: no more events are written to %s: %s; the work goes on\n",
			report.Printable(l.name), report.Printable(err.Error())) // nobody is left to tell
	})
}

// attempt is a bus for one attempt, whose events are followed, and what to call
// when that is over.
func (l *eventLog) attempt(in datasets.Instance, n int) (bus *events.Bus, done func()) {
	bus = events.NewBus()
	l.follow(bus, in.ID, n)
	return bus, bus.Close
}

// Close waits until all events are written of buses that are closed, which all
// are to be, but not for long: who does not read does not hold up the end.
func (l *eventLog) Close() {
	if l == nil {
		return
	}
	written := make(chan struct{})
	go func() { // ends with the followers
		l.wait.Wait()
		close(written)
	}()
	late := time.NewTimer(eventsPatience)
	defer late.Stop()
	select {
	case <-written:
	case <-late.C:
		l.failed(errors.New("nobody takes them"))
	}
	l.cancel()
	if l.file == nil {
		return
	}
	info, err := l.file.Stat()
	if err := l.file.Close(); err != nil { // which also frees a follower that is stuck in it
		l.failed(err)
	}
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 { // it never came to anything, and the next try is to have the name
		_ = os.Remove(l.name)
	}
}
