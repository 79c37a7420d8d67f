package live

import (
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// helpText explains the keys and the terms on the screen.
const helpText = ` Keys
   ↑ ↓  j k            select the next or previous instance
   PgUp PgDn  space    scroll by a screen
   Home End  g G       first, last rows
   f Enter             follow its attempt; Esc goes back
   R                   requeue it: run it again, last in the queue
   K y                 kill it: its work is kept; no retry
   p                   pause: start no more instances; again resumes
   D                   drain: finish running instances, then exit
   Ctrl-C              stop: end running instances, keep their work
   Ctrl-C again        kill running instances at once
   Ctrl-Z              suspend; fg returns
   ?                   show or hide this help

 Phases of a worker
   pulling    pulling the image
   queued     waiting for the cluster
   starting   starting the sandbox
   thinking   waiting for the model's reply
   running    running a command
   closing    taking the diff, closing the sandbox
   waiting    for the provider, an image, or a retry
   idle       no instance left to run

 Outcomes
   submitted, limit           a result
   provider, environment      no result: the next run retries them
   interrupted, internal      the same`

func helpLines() []string { return strings.Split(helpText, "\n") }

// helpScreen renders the help from line top on. It reduces top if the screen would not be full.
func helpScreen(w, h, top int) string {
	lines, room := helpLines(), max(0, h-1)
	top = clampHelp(top, h)
	shown := lines[top:min(top+room, len(lines))]
	out := make([]string, 0, h)
	for _, l := range shown {
		l = terminal.Truncate(l, w)
		if !strings.HasPrefix(l, "   ") {
			l = steps.Bold(l)
		}
		out = append(out, l)
	}
	for len(out) < room {
		out = append(out, "")
	}
	keys := "? goes back"
	switch {
	case len(shown) == len(lines):
	case top+len(shown) < len(lines):
		keys = "↓ more   " + keys
	default:
		keys = "↑ more   " + keys
	}
	return strings.Join(append(out, steps.Faint(terminal.Truncate(" "+keys, w))), "\n")
}

// clampHelp limits the first visible line of the help, so that the help fills the screen if it
// is long enough.
func clampHelp(top, h int) int {
	return max(0, min(top, len(helpLines())-max(0, h-1)))
}
