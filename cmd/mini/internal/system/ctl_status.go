package system

import (
	"fmt"
	"io"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// classOrder is the order in which classes are listed.
var classOrder = [...]trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider,
	trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
}

// writeStatus prints the state of a batch.
func writeStatus(w io.Writer, dir string, s control.Status) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, for %s\n", dir, stateText(s), timeline.FormatDuration(configs.Duration(s.Elapsed)))
	if q := s.Queue; q != nil {
		facts := []string{fmt.Sprintf("%d of %d", q.Done, q.Total)}
		for _, c := range classOrder {
			if n := q.Classes[c]; n > 0 {
				facts = append(facts, fmt.Sprintf("%d %s", n, c))
			}
		}
		if q.Skipped > 0 {
			facts = append(facts, fmt.Sprintf("%d had a result before", q.Skipped))
		}
		addFact(&b, "done", strings.Join(facts, ", "))
		queue := text.Count(len(q.Waiting), "instance")
		if len(q.Waiting) > 0 {
			queue += ", next " + q.Waiting[0]
		}
		if len(q.Dropped) > 0 {
			queue += fmt.Sprintf("; %d killed before the start", len(q.Dropped))
		}
		addFact(&b, "queue", queue)
	}
	for _, p := range s.Providers {
		text := fmt.Sprintf("%s: %d in flight", p.Endpoint, p.InFlight)
		if busy := report.ProviderText(p.ProviderState); busy != "" {
			text += ", " + busy
		}
		addFact(&b, "provider", text)
	}
	if text := diskText(s.Disk); text != "" {
		addFact(&b, "disk", text)
	}
	if len(s.Running) > 0 {
		fmt.Fprintf(&b, "\n%-10s %4s  %8s  %8s  %s\n", "doing", "step", "cost", "time", "instance")
		for _, r := range s.Running {
			cost := ""
			if r.Cost > 0 {
				cost = fmt.Sprintf("$%.2f", r.Cost)
			}
			fmt.Fprintf(&b, "%-10s %4d  %8s  %8s  %s\n", r.Phase, r.Step, cost, timeline.FormatDuration(configs.Duration(r.Elapsed)), r.TaskID)
		}
	}
	_, err := io.WriteString(w, cmdutil.Sanitize(strings.TrimSuffix(b.String(), "\n"))+"\n")
	return err
}

// addFact appends a line with the name of a fact and its text.
func addFact(b *strings.Builder, name, text string) { fmt.Fprintf(b, "%-9s %s\n", name, text) }

// stateText describes the state of the batch in a few words.
func stateText(s control.Status) string {
	switch q := s.Queue; {
	case q == nil:
		return "the agent has finished, and the evaluation is running"
	case q.Draining:
		return fmt.Sprintf("draining, %d running", len(q.Working))
	case q.Paused:
		return fmt.Sprintf("paused, %d running", len(q.Working))
	default:
		return fmt.Sprintf("%d running", len(q.Working))
	}
}

// diskText describes the free disk space and the size of the images. It omits
// unknown figures.
func diskText(d control.Disk) string {
	var parts []string
	if d.RunFree != nil {
		parts = append(parts, table.SizeText(*d.RunFree)+" free for the run")
	}
	if d.EngineFree != nil {
		parts = append(parts, table.SizeText(*d.EngineFree)+" free for the engine")
	}
	if d.ImageBudget != nil {
		used := "?"
		if d.Images != nil {
			used = table.SizeText(*d.Images)
		}
		parts = append(parts, fmt.Sprintf("images use %s of %s", used, table.SizeText(*d.ImageBudget)))
	}
	return strings.Join(parts, ", ")
}
