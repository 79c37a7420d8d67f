package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// classOrder is how classes are listed.
var classOrder = [...]trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider,
	trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
}

// writeStatus prints how a batch stands.
func writeStatus(w io.Writer, dir string, s control.Status) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, for %s\n", dir, standingText(s), timeline.Clock(duration(s.Elapsed)))
	if q := s.Standing; q != nil {
		facts := []string{fmt.Sprintf("%d of %d", q.Done, q.Total)}
		for _, c := range classOrder {
			if n := q.Classes[c]; n > 0 {
				facts = append(facts, fmt.Sprintf("%d %s", n, c))
			}
		}
		if q.Skipped > 0 {
			facts = append(facts, fmt.Sprintf("%d had a result before", q.Skipped))
		}
		fact(&b, "done", strings.Join(facts, ", "))
		queue := report.Count(len(q.Waiting), "instance")
		if len(q.Waiting) > 0 {
			queue += ", next " + q.Waiting[0]
		}
		if len(q.Dropped) > 0 {
			queue += fmt.Sprintf("; %d killed before they began", len(q.Dropped))
		}
		fact(&b, "queue", queue)
	}
	for _, p := range s.Providers {
		text := fmt.Sprintf("%s: %d in flight", p.Endpoint, p.InFlight)
		if busy := report.Busy(p.ProviderState); busy != "" {
			text += ", " + busy
		}
		fact(&b, "provider", text)
	}
	if text := roomText(s.Disk); text != "" {
		fact(&b, "disk", text)
	}
	if len(s.Running) > 0 {
		fmt.Fprintf(&b, "\n%-10s %4s  %8s  %8s  %s\n", "doing", "step", "cost", "time", "instance")
		for _, r := range s.Running {
			cost := ""
			if r.Cost > 0 {
				cost = fmt.Sprintf("$%.2f", r.Cost)
			}
			fmt.Fprintf(&b, "%-10s %4d  %8s  %8s  %s\n", r.Phase, r.Step, cost, timeline.Clock(duration(r.Elapsed)), r.Who)
		}
	}
	_, err := io.WriteString(w, lines(strings.TrimSuffix(b.String(), "\n"))+"\n")
	return err
}

func fact(b *strings.Builder, name, text string) { fmt.Fprintf(b, "%-9s %s\n", name, text) }

// standingText says in a word what the batch is about.
func standingText(s control.Status) string {
	switch q := s.Standing; {
	case q == nil:
		return "the agent is done, and verdicts are awaited"
	case q.Draining:
		return fmt.Sprintf("draining, %d running", len(q.Working))
	case q.Paused:
		return fmt.Sprintf("paused, %d running", len(q.Working))
	default:
		return fmt.Sprintf("%d running", len(q.Working))
	}
}

// roomText is the room there is, as far as it is known.
func roomText(d control.Disk) string {
	var parts []string
	if d.Run != nil {
		parts = append(parts, report.Size(*d.Run)+" free for the run")
	}
	if d.Engine != nil {
		parts = append(parts, report.Size(*d.Engine)+" free for the engine")
	}
	if d.Budget != nil {
		taken := "?"
		if d.Images != nil {
			taken = report.Size(*d.Images)
		}
		parts = append(parts, fmt.Sprintf("images take %s of %s", taken, report.Size(*d.Budget)))
	}
	return strings.Join(parts, ", ")
}
