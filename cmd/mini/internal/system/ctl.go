package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
)

// exitNotRunning is the exit code of mini ctl if no batch is running in the folder,
// or if the batch runs on another machine.
const exitNotRunning = 3

// NewCtl returns the command mini ctl.
func NewCtl(s cmdutil.Streams) *cobra.Command {
	asJSON := false
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
			return runCtl(cmd, s.Out, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
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
func runCtl(cmd *cobra.Command, out io.Writer, args []string, asJSON bool) error {
	dir, request := args[0], control.Request{Action: control.StatusAction}
	if len(args) > 1 {
		request.Action = args[1]
	}
	if len(args) > 2 {
		request.TaskID = args[2]
	}
	if err := checkRunFolder(dir); err != nil {
		return err
	}
	reply, err := control.Send(cmd.Context(), dir, request)
	if notRunning, ok := errors.AsType[*control.NotRunningError](err); ok {
		return cmdutil.WithCode(fmt.Errorf("%w; mini report %s shows its results", notRunning, text.ShellQuote(dir)), exitNotRunning)
	}
	if err != nil {
		return err
	}
	if !reply.OK {
		return replyError(dir, reply)
	}
	switch {
	case asJSON && reply.Status != nil:
		return json.NewEncoder(out).Encode(reply.Status)
	case asJSON:
		return json.NewEncoder(out).Encode(reply)
	case reply.Status != nil:
		return writeStatus(out, dir, *reply.Status)
	}
	_, err = fmt.Fprintln(out, cmdutil.Sanitize(reply.Text))
	return err
}

// replyError returns the error of a reply, with the exit code for its kind.
func replyError(dir string, r control.Reply) error {
	err := fmt.Errorf("%s: %s", dir, r.Error)
	switch r.Kind {
	case control.UnknownTask:
		return cmdutil.WithCode(err, cmdutil.ExitUsage)
	case control.NotRunning:
		return cmdutil.WithCode(err, exitNotRunning)
	}
	return err
}

// checkRunFolder returns an error if dir is not the folder of a run.
func checkRunFolder(dir string) error {
	for _, name := range []string{control.FileName, "run.json", ".lock"} {
		if cmdutil.FileExists(filepath.Join(dir, name)) {
			return nil
		}
	}
	if _, err := os.Stat(dir); err != nil {
		return cmdutil.RunFolderError(dir, err)
	}
	return cmdutil.RunFolderError(dir, fmt.Errorf("%s is %w", dir, runner.ErrNotRunFolder))
}
