package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/env/docker"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
)

// CleanOptions are the flags of mini clean.
type CleanOptions struct {
	settings.Flags // for the cluster
	options        docker.CleanOptions
	run            string
	dryRun, json   bool
	kubernetes     bool
}

// NewClean returns the command mini clean.
func NewClean(a *app.App) *cobra.Command {
	o := &CleanOptions{}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what killed mini processes left behind",
		Long: `Removes containers, volumes and temporary folders of mini processes on this host
that have ended, and lists them. It keeps those of running processes and of
other hosts, and everything that mini did not create. It also keeps sandboxes
from mini bench --keep; --kept removes them, except for local folders.

Images that mini pulled or prepared are removed by mini images prune.

mini cannot check processes of another boot or PID namespace. It keeps what they
created for two days and while it is in use. Older versions of mini did not
record which user kept a sandbox. Both are listed on stderr. --unknown removes
them; check first that no such mini process is running.

With --kubernetes it removes what is left in the namespace of a cluster instead:
pods whose mini process has sent no heartbeat for 15 minutes. --unknown removes
those of other processes, too, also of running ones.`,
		Example: "  mini clean\n  mini clean --dry-run\n  mini clean --all     also the volumes of the helper\n  mini clean --unknown --dry-run\n  mini clean --kubernetes -c environment.kubernetes.namespace=bench",
		Args:    cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.kubernetes:
				return cleanCluster(cmd.Context(), a, o)
			case len(o.Config) > 0:
				return usage.Errorf("-c needs --kubernetes: it says which cluster to clean")
			}
			return cleanHost(cmd.Context(), a, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.options.IncludeHelpers, "all", false, "also remove the volumes, or with --kubernetes the ConfigMaps, of mini's helper")
	f.BoolVar(&o.options.IncludeKept, "kept", false, "also remove the sandboxes that this user kept with mini bench --keep")
	f.StringVar(&o.run, "run", "", "with --kept, only sandboxes of the run in `FOLDER`")
	f.BoolVar(&o.options.IncludeUnknown, "unknown", false, "also remove what has an owner that mini cannot check")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be removed, and remove nothing")
	f.BoolVar(&o.json, "json", false, "print JSON lines")
	f.BoolVar(&o.kubernetes, "kubernetes", false, "clean the namespace of the configured cluster instead of this host")
	o.AddConfigFlag(f)
	f.Lookup("config").Usage = "with --kubernetes: YAML `FILE` or key.sub=value; repeatable"
	return cmd
}

func cleanHost(ctx context.Context, a *app.App, o *CleanOptions) error {
	if o.run != "" && !o.options.IncludeKept {
		return usage.Errorf("--run needs --kept: it selects the run of the kept sandboxes")
	}
	o.options.Run = envopen.RunLabel(o.run)
	sweepFolders := scratch.Sweep
	if o.dryRun {
		sweepFolders = scratch.Abandoned
	}
	folders := sweepFolders()
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return errors.Join(o.print(a, hostItems(folders, nil), nil, hintUnknown, false), usage.Wrap(err))
	}
	clean := engine.Clean
	if o.dryRun {
		clean = engine.ListLeftovers
	}
	left, err := clean(ctx, o.options)
	var remaining []docker.Leftover // those whose owner mini cannot check
	var listErr error
	if options := o.options; !options.IncludeUnknown {
		options.IncludeUnknown = true
		remaining, listErr = engine.ListLeftovers(ctx, options)
		remaining = slices.DeleteFunc(remaining, func(l docker.Leftover) bool { return !l.OwnerUnknown })
	}
	// Print what was removed even after an error.
	err = errors.Join(err, o.print(a, hostItems(folders, left), hostItems(nil, remaining), hintUnknown, err == nil && listErr == nil), listErr, engine.Close())
	_, _ = fmt.Fprintln(a.Err, "images that mini pulled or prepared are removed by mini images prune") // best effort
	return err
}

const hintUnknown = "check that no mini process uses these, and remove them with --unknown"

// hostItems returns folders and objects of the engine as items to print.
func hostItems(folders []string, left []docker.Leftover) []fmt.Stringer {
	for _, dir := range folders {
		left = append(left, docker.Leftover{Kind: "folder", Name: dir})
	}
	return stringers(left)
}

func stringers[T fmt.Stringer](list []T) []fmt.Stringer {
	all := make([]fmt.Stringer, len(list))
	for i, l := range list {
		all[i] = l
	}
	return all
}

// print prints one line on stdout for each item that was removed, or would be without
// --dry-run, and one on stderr for each remaining item. complete means that everything
// was listed without an error; hint says what to do about the remaining items.
func (o *CleanOptions) print(a *app.App, removed, remaining []fmt.Stringer, hint string, complete bool) error {
	enc := json.NewEncoder(a.Out)
	for _, l := range removed {
		var err error
		if o.json {
			err = enc.Encode(l)
		} else {
			_, err = fmt.Fprintln(a.Out, text.Printable(l.String()))
		}
		if err != nil {
			return err
		}
	}
	for _, l := range remaining {
		_, _ = fmt.Fprintln(a.Err, "kept:", text.Printable(l.String())) // best effort
	}
	switch {
	case len(remaining) > 0:
		_, _ = fmt.Fprintln(a.Err, hint)
	case len(removed) == 0 && complete:
		_, _ = fmt.Fprintln(a.Err, "nothing to remove; mini images prune removes images that mini pulled or prepared")
	}
	return nil
}
