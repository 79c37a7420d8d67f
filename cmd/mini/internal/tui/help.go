package tui

import (
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
)

// help says what the keys do and what the words mean.
const help = ` Keys
   ↑ ↓  j k            the next instance, the one before
   PgUp PgDn  space    a screen of rows
   Home End  g G       the first rows, the last
   f Enter             follow its attempt as it grows; Esc goes back
   R                   begin it anew, at the end of the queue
   K y                 kill it: its work is kept, and not tried again
   p                   pause: start nothing more; again to go on
   D                   drain: end with what runs
   Ctrl-C              stop: what runs is ended, its work kept
   Ctrl-C again        kill what runs, at once
   Ctrl-Z              leave the screen; fg comes back
   ?                   this page, and back

 What a worker is doing
   pulling    the image is fetched
   starting   the sandbox is made
   thinking   the model was asked
   running    the command runs
   closing    the diff is taken, the sandbox closed
   waiting    for the provider, an image, or its next try
   idle       there is nothing left for it

 How instances end
   submitted, limit           a result
   provider, environment      no result: run again by the next start
   interrupted, internal      likewise`

func helpLines() []string { return strings.Split(help, "\n") }

// helpScreen is the page from a line on, as far as that leaves no line empty
// for which there is one.
func helpScreen(w, h, top int) string {
	lines, room := helpLines(), max(0, h-1)
	top = clampHelp(top, h)
	shown := lines[top:min(top+room, len(lines))]
	out := make([]string, 0, h)
	for _, l := range shown {
		l = cut(l, w)
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
	return strings.Join(append(out, steps.Faint(cut(" "+keys, w))), "\n")
}

// clampHelp keeps the first line shown where there are lines to show.
func clampHelp(top, h int) int {
	return max(0, min(top, len(helpLines())-max(0, h-1)))
}
