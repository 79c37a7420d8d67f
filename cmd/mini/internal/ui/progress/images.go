package progress

import (
	"fmt"
	"io"

	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
)

// Observe returns an observer that emits run events.
func Observe(emit func(runner.Event)) envopen.Observer {
	phase := func(p runner.Phase) func(instance, image string) {
		return func(instance, image string) {
			emit(runner.Event{Type: runner.PhaseChanged, Phase: p, Instance: instance, Text: image})
		}
	}
	return envopen.Observer{
		Pull:      PullEvents(emit),
		Image:     imageEvents(emit),
		Starting:  phase(runner.Starting),
		Scrubbing: phase(runner.Scrubbing),
		Warning:   func(text string) { emit(runner.Event{Type: runner.Warning, Text: text}) },
	}
}

// imageEvents converts events of images to run events.
func imageEvents(emit func(runner.Event)) func(imagestore.Event) {
	return func(n imagestore.Event) {
		phase := runner.Phase("")
		switch n.Kind {
		case imagestore.RateLimited, imagestore.Retry:
			phase = runner.Waiting
			emit(runner.Event{Type: runner.PullProgress, Instance: n.Requester, Text: n.Image + ": " + n.Text, Elapsed: n.Wait.Seconds()})
		case imagestore.WaitingForSpace:
			phase = runner.Waiting
			emit(runner.Event{Type: runner.Warning, Instance: n.Requester, Text: n.Image + ": " + n.Text})
		case imagestore.Resumed:
			phase = runner.Starting
		case imagestore.Removed:
			emit(runner.Event{Type: runner.PullProgress, Text: n.Image + ": " + n.Text})
		case imagestore.Warning:
			emit(runner.Event{Type: runner.Warning, Text: n.Text})
		}
		if phase != "" && n.Requester != "" {
			emit(runner.Event{Type: runner.PhaseChanged, Phase: phase, Instance: n.Requester, Text: n.Image, Elapsed: n.Wait.Seconds()})
		}
	}
}

// PrintImageEvents prints the events of images for people, outside of a run.
func PrintImageEvents(w io.Writer) func(imagestore.Event) {
	return func(n imagestore.Event) {
		if n.Kind == imagestore.Resumed {
			return
		}
		line := n.Text
		if n.Image != "" {
			line = n.Image + ": " + line
		}
		_, _ = fmt.Fprintln(w, "mini:", text.Printable(line)) // best effort
	}
}
