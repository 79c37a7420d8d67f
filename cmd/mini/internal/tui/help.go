package tui

import "strings"

// help says what the keys do and what the words mean.
const help = ` Keys
   ↑ ↓  j k            one row up or down
   PgUp PgDn  space    a screen of rows
   Home End  g G       the first rows, the last
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
   waiting    it failed, and is tried again in a moment
   idle       there is nothing left for it

 How instances end
   submitted, limit           a result
   provider, environment      no result: run again by the next start
   interrupted, internal      likewise`

func helpScreen(w, h int) string {
	lines := strings.Split(help, "\n")
	out := make([]string, 0, h)
	for _, l := range lines[:min(len(lines), max(0, h-1))] {
		l = cut(l, w)
		if !strings.HasPrefix(l, "   ") {
			l = bold(l)
		}
		out = append(out, l)
	}
	for len(out) < h-1 {
		out = append(out, "")
	}
	return strings.Join(append(out, faint(cut(" ? goes back", w))), "\n")
}
