package report

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/trajectories"
)

// writeFailing names the instances without a result, by exit status.
func (g Glance) writeFailing(s *strings.Builder, width int) {
	if len(g.Failing) == 0 {
		return
	}
	s.WriteString("\nno result\n")
	alike := map[string]int{}
	left, interrupted := 0, 0
	for i, r := range g.Failing {
		if r.Class == trajectories.Interrupted { // by the user, who knows
			interrupted++
			left++
			continue
		}
		if alike[r.Status]++; alike[r.Status] > maxAlike || i-left >= maxFailing {
			left++
			continue
		}
		status, command := bounded(Printable(r.Status), statusWidth), g.command(r)
		if statusWidth+len(gap)+ansi.StringWidth(command) > width {
			fmt.Fprintf(s, "%s\n    %s\n", status, command)
		} else {
			fmt.Fprintf(s, "%-*s%s%s\n", statusWidth, status, gap, command)
		}
	}
	if more := left - interrupted; more > 0 {
		fmt.Fprintf(s, "... and %d more; --json has all\n", more)
	}
	if interrupted > 0 {
		s.WriteString(paragraph(Count(interrupted, "instance")+" stopped with mini, and begun anew by the next start", width, 0, 2))
	}
}

// statusWidth is room for every exit status that mini has, in characters.
const statusWidth = 20

// command is what shows one instance.
func (g Glance) command(r Row) string {
	return Printable("mini report " + quoted(g.Run) + " -i " + quoted(r.ID))
}

// quoted is a word as a shell takes it.
func quoted(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+=:@%,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
