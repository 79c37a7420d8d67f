package progress

import (
	"fmt"
	"io"

	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
)

// NewObserver returns an Observer of sandbox starts that emits run events.
func NewObserver(emit func(runner.Event)) envopen.Observer {
	emitPhase := func(p runner.Phase) func(instance, text string) {
		return func(instance, text string) {
			emit(runner.Event{Type: runner.PhaseChanged, Phase: p, Instance: instance, Text: text})
		}
	}
	return envopen.Observer{
		Pull:      PullEvents(emit),
		Image:     imageEvents(emit),
		Starting:  emitPhase(runner.PhaseStarting),
		Scrubbing: emitPhase(runner.PhaseScrubbing),
		Waiting:   emitPhase(runner.PhaseQueued),
		Warning:   func(text string) { emit(runner.Event{Type: runner.Warning, Text: text}) },
	}
}

// imageEvents returns a callback that converts events of the image store to run
// events.
func imageEvents(emit func(runner.Event)) func(imagestore.Event) {
	return func(e imagestore.Event) {
		phase := runner.Phase("")
		switch e.Kind {
		case imagestore.RateLimited, imagestore.Retry:
			phase = runner.PhaseWaiting
			emit(runner.Event{
				Type: runner.PullProgress, Instance: e.Requester, Text: e.Image + ": " + e.Text, Elapsed: e.Wait.Seconds(),
			})
		case imagestore.WaitingForSpace:
			phase = runner.PhaseWaiting
			emit(runner.Event{Type: runner.Warning, Instance: e.Requester, Text: e.Image + ": " + e.Text})
		case imagestore.Resumed:
			phase = runner.PhaseStarting
		case imagestore.Removed:
			emit(runner.Event{Type: runner.PullProgress, Text: e.Image + ": " + e.Text})
		case imagestore.Warning:
			emit(runner.Event{Type: runner.Warning, Text: e.Text})
		}
		if phase != "" && e.Requester != "" {
			emit(runner.Event{
				Type: runner.PhaseChanged, Phase: phase, Instance: e.Requester, Text: e.Image, Elapsed: e.Wait.Seconds(),
			})
		}
	}
}

// PrintImageEvents returns a callback that prints events of the image store as
// lines, except Resumed, for commands that work without a run.
func PrintImageEvents(w io.Writer) func(imagestore.Event) {
	return func(e imagestore.Event) {
		if e.Kind == imagestore.Resumed {
			return
		}
		line := e.Text
		if e.Image != "" {
			line = e.Image + ": " + line
		}
		_, _ = fmt.Fprintln(w, "mini:", text.Printable(line)) // best effort
	}
}
