package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/runner/report"
)

// cleanOptions are the flags of mini clean.
type cleanOptions struct {
	thorough     docker.Thorough
	run          string
	dryRun, json bool
}

func newClean(s Streams) *cobra.Command {
	o := &cleanOptions{}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what a killed mini left in the container engine",
		Long: `Removes the containers and volumes of minis on this host that no longer run,
and their temporary folders, and says which. Those of a running
mini, of another host, and everything that is not mini's stay. So do sandboxes
that this user kept on purpose, unless --kept is given; local folders of kept
sandboxes are not touched.

A mini of another boot or PID namespace may run: what it made stays for two
days, and as long as it is in use. Sandboxes that an older mini kept do not say
which user kept them. Both are listed on standard error, and --unknown removes
them. Check first that no such mini runs.`,
		Example: "  mini clean\n  mini clean --dry-run\n  mini clean --all     also the volumes with mini's helper\n  mini clean --unknown --dry-run",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.clean(cmd.Context(), s) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.thorough.Helpers, "all", false, "also remove the volumes that hold mini's helper")
	f.BoolVar(&o.thorough.Kept, "kept", false, "also remove the sandboxes that mini bench --keep has kept for this user")
	f.StringVar(&o.run, "run", "", "with --kept, only those of this run's `FOLDER`")
	f.BoolVar(&o.thorough.Unknown, "unknown", false, "also remove what stays because its owner cannot be checked")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	f.BoolVar(&o.json, "json", false, "print what was removed as JSON, a line each")
	return cmd
}

func (o *cleanOptions) clean(ctx context.Context, s Streams) error {
	if o.run != "" && !o.thorough.Kept {
		return usagef("--run says whose kept sandboxes are to go; add --kept")
	}
	o.thorough.Run = runLabel(o.run)
	folders := scratch.Sweep
	if o.dryRun {
		folders = scratch.Abandoned
	}
	local := folders()
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return errors.Join(o.say(s, local, nil, nil, false), before(err))
	}
	clean := engine.Clean
	if o.dryRun {
		clean = engine.Cleanable
	}
	left, err := clean(ctx, o.thorough)
	stays, failed := o.unknown(ctx, engine)
	// What was done is said also when not all could be.
	return errors.Join(err, o.say(s, local, left, stays, err == nil && failed == nil), failed, engine.Close())
}

// unknown is what stays because its owner may run.
func (o *cleanOptions) unknown(ctx context.Context, engine *docker.Engine) ([]docker.Leftover, error) {
	if o.thorough.Unknown {
		return nil, nil
	}
	t := o.thorough
	t.Unknown = true
	left, err := engine.Cleanable(ctx, t)
	return slices.DeleteFunc(left, func(l docker.Leftover) bool { return !l.Unknown }), err
}

// say is a line for each.
func (o *cleanOptions) say(s Streams, folders []string, left, stays []docker.Leftover, complete bool) error {
	for _, dir := range folders {
		left = append(left, docker.Leftover{Kind: "folder", Name: dir})
	}
	enc := json.NewEncoder(s.Out)
	for _, l := range left {
		var err error
		if o.json {
			err = enc.Encode(l)
		} else {
			_, err = fmt.Fprintln(s.Out, report.Printable(l.String()))
		}
		if err != nil {
			return err
		}
	}
	for _, l := range stays {
		if _, err := fmt.Fprintln(s.Err, "stays:", report.Printable(l.String())); err != nil {
			return err
		}
	}
	if len(stays) > 0 {
		_, err := fmt.Fprintln(s.Err, "check that no mini uses what stays, and remove it with the flag --unknown")
		return err
	}
	if len(left) == 0 && complete {
		_, err := fmt.Fprintln(s.Err, "nothing was left behind")
		return err
	}
	return nil
}

// sweep removes what dead minis left before anything is started, and says so.
// What cannot be removed is not in the way.
func sweep(ctx context.Context, engine *docker.Engine, w io.Writer) error {
	removed, err := engine.Sweep(ctx)
	for _, l := range removed {
		_, _ = fmt.Fprintln(w, "mini: removed what a killed mini had left:", report.Printable(l.String())) // only for people
	}
	failed, ok := errors.AsType[*env.Error](err)
	if err == nil || !ok || failed.Status == env.DaemonUnavailable {
		return err
	}
	_, _ = fmt.Fprintln(w, "mini: warning: what a killed mini had left stays:", lines(err.Error())) // only for people
	return nil
}
