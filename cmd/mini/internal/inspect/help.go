package inspect

import (
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/screen"
)

const helpText = ` The list
   j k  up down  PgUp PgDn    move          Enter l    read the trajectory
   s S                        sort by the next column; turn the order round
   f                          filter: status:limit verdict:unresolved cost>1
                              time>5m flags:none -id:django text:"no such file"
                              Tab completes; fields: id status verdict cost
                              steps tokens time flags text
   /                          search in all trajectories; Esc stops, then clears
   a                          other attempts at the instances too
   e E                        the trajectory in $PAGER
   R                          look again      ! what could not be read
 Reading
   l right  h left            next step, the one before
   0 $                        the prompts, the end
   g                          go to a step
   j k down up                scroll 15 lines      PgDn PgUp space   a screen
   Ctrl-E Ctrl-Y              one line             Home End          top, end
   L H                        next trajectory, the one before
   x X                        next step with an error, the one before
   / n N                      search here, next match, the one before
   r                          show or hide reasoning
   d                          the patch            t   log of the tests
   b                          copy the command that branches off after this step
   e E                        the step, or the trajectory, in $PAGER
   R F                        read again; follow an attempt that goes on
   Esc                        back to the list
 Ctrl-Z leaves to the shell, fg comes back; q quits. A search finds any case,
 unless it has a capital letter.`

func helpLines() []string { return strings.Split(helpText, "\n") }

func (m *view) helpView() []string {
	lines := []string{bold(screen.Cut(" mini inspect: keys", m.width))}
	for _, line := range helpLines()[min(m.helpTop, len(helpLines())-1):] {
		lines = append(lines, screen.Cut(line, m.width))
	}
	return lines[:min(len(lines), max(1, m.height-1))]
}
