package cli

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

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/runner/report"
)

// exitNotRunning is mini ctl's own: nobody takes orders for that run, since it is
// over, or on another machine.
const exitNotRunning = 3

func newCtl(s Streams) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "ctl RUN [status|pause|resume|drain|requeue ID|kill ID]",
		Short: "Steer a batch that runs, from another terminal",
		Long: `Steers the batch that works in the folder RUN, or says how it stands. The live
view of the batch has keys for the same.

  status      how the batch stands; also where no verb is given
  pause       start nothing more; what runs goes on
  resume      go on after pause, or after drain while something still runs
  drain       start nothing more, and end with what runs (exit code 3); the
              rest stays pending
  requeue ID  begin this instance anew, at the end of the queue: what runs is
              ended first, what has a result is done again, all attempts stay
  kill ID     end this instance with its work kept, or do not start it

With several results for each instance, ID#2 is one, and ID all of them. Exit
codes: 0 done, 1 it cannot be done, 2 a mistake on the line, 3 no batch runs.`,
		Example: `  mini ctl runs/first
  mini ctl runs/first pause
  mini ctl runs/first kill astropy__astropy-12907
  mini ctl runs/first status --json`,
		Args: ctlArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCtl(cmd, s.Out, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what came of it as JSON")
	return cmd
}

// ctlArgs knows a run, a verb, and an id where the verb wants one.
func ctlArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("mini ctl takes the folder of a run, and what is to be done; see mini ctl --help")
	}
	if len(args) == 1 {
		return nil
	}
	verb, ids := args[1], args[2:]
	switch {
	case !slices.Contains(control.Verbs(), verb):
		if near := configs.Nearest(verb, control.Verbs()); near != "" {
			return usagef("mini ctl cannot %.40q; did you mean %s?", verb, near)
		}
		return usagef("mini ctl cannot %.40q; there is %s", verb, strings.Join(control.Verbs(), ", "))
	case control.Named(verb) && len(ids) == 0:
		return usagef("which instance? mini ctl %s %s ID; mini ctl %s shows those that run", args[0], verb, args[0])
	case control.Named(verb) && len(ids) > 1:
		return usagef("mini ctl %s takes one instance at a time, not %d", verb, len(ids))
	case !control.Named(verb) && len(ids) > 0:
		return usagef("mini ctl %s is about the whole batch, and takes no %.80q", verb, ids[0])
	}
	return nil
}

// runCtl is `mini ctl`.
func runCtl(cmd *cobra.Command, out io.Writer, args []string, asJSON bool) error {
	dir, q := args[0], control.Request{Verb: control.StatusVerb}
	if len(args) > 1 {
		q.Verb = args[1]
	}
	if len(args) > 2 {
		q.Who = args[2]
	}
	if err := ctlRun(dir); err != nil {
		return err
	}
	reply, err := control.Ask(cmd.Context(), dir, q)
	if over, ok := errors.AsType[*control.NotRunningError](err); ok {
		return &codedError{fmt.Errorf("%w; mini report %s shows what there is", over, report.ShellWord(dir)), exitNotRunning}
	}
	if err != nil {
		return err
	}
	if !reply.OK {
		return refused(dir, reply)
	}
	switch {
	case asJSON && reply.Status != nil:
		return json.NewEncoder(out).Encode(reply.Status)
	case asJSON:
		return json.NewEncoder(out).Encode(reply)
	case reply.Status != nil:
		return writeStatus(out, dir, *reply.Status)
	}
	_, err = fmt.Fprintln(out, lines(reply.Text))
	return err
}

// refused is what a run has to say against an order.
func refused(dir string, r control.Reply) error {
	err := fmt.Errorf("%s: %s", dir, r.Error)
	switch r.Kind {
	case control.Unknown:
		return &codedError{err, exitUsage}
	case control.Over:
		return &codedError{err, exitNotRunning}
	}
	return err
}

// ctlRun refuses what is not the folder of a run, whether one works there or not.
func ctlRun(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return noRun(dir, err)
	}
	for _, name := range []string{control.File, "run.json", ".lock"} {
		if exists(filepath.Join(dir, name)) {
			return nil
		}
	}
	if above, id, within := runAbove(dir); within && id != "" {
		return usagef("%s is of an instance of a run: mini ctl %s, and then what is to be done with %s", dir, report.ShellWord(above), report.ShellWord(id))
	} else if above := filepath.Dir(dir); within || !info.IsDir() && isRun(above) {
		return usagef("%s belongs to a run: mini ctl %s", dir, report.ShellWord(above))
	}
	if near := newestRun(dir); near != "" {
		return usagef("%s holds runs, and is none itself; the newest one: mini ctl %s", dir, report.ShellWord(near))
	}
	if !info.IsDir() {
		return usagef("%s is a file, and %w", dir, runner.ErrNoRun)
	}
	return noRun(dir, fmt.Errorf("%s is %w", dir, runner.ErrNoRun))
}
