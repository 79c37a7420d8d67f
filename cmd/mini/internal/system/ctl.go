package system

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// exitNotRunning is the exit code of mini ctl if no batch is running in the folder,
// or if the batch runs on another machine.
const exitNotRunning = 3

// CtlOptions are the flags of mini ctl.
type CtlOptions struct{ json bool }

// NewCtl returns the command mini ctl.
func NewCtl(a *app.App) *cobra.Command {
	o := &CtlOptions{}
	cmd := &cobra.Command{
		Use:   "ctl RUN [status|pause|resume|drain|requeue ID|kill ID]",
		Short: "Control a running batch from another terminal",
		Long: `Shows the state of the batch that runs in the folder RUN, or controls it. The
live view of the batch has keys for the same actions.

  status      show the state of the batch (default)
  pause       start no more instances; running ones continue
  resume      start instances again after pause, or after drain while an
              instance is still running
  drain       start no more instances, and exit after the running ones with
              code 3; the others stay pending
  requeue ID  run the instance again, at the end of the queue; a running attempt
              is stopped first; earlier attempts are kept
  kill ID     stop the instance and keep its work, or do not start it

With several attempts per instance, ID#2 selects one, and ID selects all.
Exit codes: 0 done, 1 not possible, 2 usage error, 3 no batch is running.`,
		Example: `  mini ctl runs/first
  mini ctl runs/first pause
  mini ctl runs/first kill astropy__astropy-12907
  mini ctl runs/first status --json`,
		Args: ctlArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCtl(cmd.Context(), a, o, args)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as JSON")
	return cmd
}

// ctlArgs checks the arguments: a run, an action, and an id if the action needs one.
func ctlArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage.Errorf("mini ctl takes the folder of a run and an action; see mini ctl --help")
	}
	if len(args) == 1 {
		return nil
	}
	action, taskIDs := args[1], args[2:]
	switch {
	case !slices.Contains(control.Actions(), action):
		if near := configs.ClosestName(action, control.Actions()); near != "" {
			return usage.Errorf("unknown action %.40q; did you mean %s?", action, near)
		}
		return usage.Errorf("unknown action %.40q; the actions are %s", action, strings.Join(control.Actions(), ", "))
	case control.NeedsTask(action) && len(taskIDs) == 0:
		return usage.Errorf("name an instance: mini ctl %s %s ID; mini ctl %s lists the running ones", args[0], action, args[0])
	case control.NeedsTask(action) && len(taskIDs) > 1:
		return usage.Errorf("mini ctl %s takes one instance at a time, not %d", action, len(taskIDs))
	case !control.NeedsTask(action) && len(taskIDs) > 0:
		return usage.Errorf("mini ctl %s applies to the whole batch; remove %.80q", action, taskIDs[0])
	}
	return nil
}

// runCtl sends the request to the batch and prints the reply.
func runCtl(ctx context.Context, a *app.App, o *CtlOptions, args []string) error {
	dir, request := args[0], control.Request{Action: control.StatusAction}
	if len(args) > 1 {
		request.Action = args[1]
	}
	if len(args) > 2 {
		request.TaskID = args[2]
	}
	if !cmdutil.FileExists(filepath.Join(dir, control.FileName)) && !cmdutil.FileExists(filepath.Join(dir, "run.json")) &&
		!cmdutil.FileExists(filepath.Join(dir, ".lock")) {
		_, err := os.Stat(dir)
		return cmdutil.RunFolderError(dir, cmp.Or(err, fmt.Errorf("%s is %w", dir, runs.ErrNotRunFolder)))
	}
	reply, err := control.Send(ctx, dir, request)
	if notRunning, ok := errors.AsType[*control.NotRunningError](err); ok {
		return cmdutil.WithCode(fmt.Errorf("%w; mini report %s shows its results", notRunning, text.ShellQuote(dir)), exitNotRunning)
	}
	if err != nil {
		return err
	}
	if !reply.OK {
		err := fmt.Errorf("%s: %s", dir, reply.Error)
		switch reply.Kind {
		case control.UnknownTask:
			return cmdutil.WithCode(err, cmdutil.ExitUsage)
		case control.NotRunning:
			return cmdutil.WithCode(err, exitNotRunning)
		}
		return err
	}
	switch {
	case o.json && reply.Status != nil:
		return json.NewEncoder(a.Out).Encode(reply.Status)
	case o.json:
		return json.NewEncoder(a.Out).Encode(reply)
	case reply.Status != nil:
		return writeStatus(a.Out, dir, *reply.Status)
	}
	_, err = fmt.Fprintln(a.Out, cmdutil.Sanitize(reply.Text))
	return err
}

// classOrder is the order in which classes are listed.
var classOrder = [...]trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider,
	trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
}

// writeStatus prints the state of a batch.
func writeStatus(w io.Writer, dir string, s control.Status) error {
	var b strings.Builder
	state := "the agent has finished, and the evaluation is running"
	if q := s.Queue; q != nil {
		state = fmt.Sprintf("%d running", len(q.Working))
		if q.Draining {
			state = "draining, " + state
		} else if q.Paused {
			state = "paused, " + state
		}
	}
	fmt.Fprintf(&b, "%s: %s, for %s\n", dir, state, unit.Seconds(s.Elapsed))
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
				cost = unit.Money(r.Cost)
			}
			fmt.Fprintf(&b, "%-10s %4d  %8s  %8s  %s\n", r.Phase, r.Step, cost, unit.Seconds(r.Elapsed), r.TaskID)
		}
	}
	_, err := io.WriteString(w, cmdutil.Sanitize(strings.TrimSuffix(b.String(), "\n"))+"\n")
	return err
}

// addFact appends a line with the name of a fact and its text.
func addFact(b *strings.Builder, name, text string) { fmt.Fprintf(b, "%-9s %s\n", name, text) }

// diskText describes the free disk space and the size of the images. It omits
// unknown figures.
func diskText(d control.Disk) string {
	var parts []string
	if d.RunFree != nil {
		parts = append(parts, unit.Size(*d.RunFree)+" free for the run")
	}
	if d.EngineFree != nil {
		parts = append(parts, unit.Size(*d.EngineFree)+" free for the engine")
	}
	if d.ImageBudget != nil {
		used := "?"
		if d.Images != nil {
			used = unit.Size(*d.Images)
		}
		parts = append(parts, fmt.Sprintf("images use %s of %s", used, unit.Size(*d.ImageBudget)))
	}
	return strings.Join(parts, ", ")
}
