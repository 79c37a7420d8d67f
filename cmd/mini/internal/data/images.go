package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
)

// NewImages returns the command mini images.
func NewImages(a *app.App) *cobra.Command {
	return cmdutil.WithSubcommands(&cobra.Command{
		Use:   "images",
		Short: "List, pull and prune the images of a dataset",
		Long: `Manages the images of the rows of a dataset. mini bench pulls images itself, a
few ahead of its workers. These commands pull them in advance and remove them
afterwards.`,
		Example: `  mini images plan --subset verified
  mini images pull --subset verified --slice 0:20
  mini images prune --dry-run`,
	}, newImagesPlan(a), newImagesPull(a), newImagesPrune(a))
}

// ImagesOptions are the flags of the subcommands of mini images: those of mini bench for the selection
// of rows and settings, and the subcommands' own.
type ImagesOptions struct {
	bench              bench.Options
	parallel           int  // of pull
	keepNeeded, dryRun bool // of prune
}

// addFlags adds the flags that the subcommands share to f.
func (o *ImagesOptions) addFlags(f *pflag.FlagSet) {
	o.bench.Datasets.AddFlags(f)
	o.bench.AddSelectionFlags(f)
	o.bench.AddConfigFlag(f)
	f.BoolVar(&o.bench.JSON, "json", false, "print JSON")
}

// prepare returns the settings that mini bench would use with the same flags and, if withRows is set, a
// request for the image of each selected row, in the order of the rows. It does not require a model.
func (o *ImagesOptions) prepare(ctx context.Context, a *app.App, withRows bool) (*configs.Resolved, []imagestore.Request, error) {
	cfg, err := a.ConfigWithoutModel(ctx, &o.bench.Flags, o.bench.BuiltinConfigs()...)
	if err == nil {
		_, err = envopen.ContainerConfig(cfg, "")
	}
	if err != nil || !withRows {
		return cfg, nil, err
	}
	if len(o.bench.Datasets.Subsets) == 0 {
		return nil, nil, usage.Errorf("--subset is required: a dataset such as demo, verified or lite, or a file; mini datasets list shows datasets")
	}
	input, err := o.bench.LoadRows(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	return cfg, envopen.ImageRequests(cfg, input.Rows), nil
}

// newImagesPlan returns the command mini images plan.
func newImagesPlan(a *app.App) *cobra.Command {
	o := &ImagesOptions{}
	cmd := &cobra.Command{
		Use:   "plan --subset SET",
		Short: "List the images of a dataset and the ones to pull",
		Long: `Lists the images of the rows of a dataset. For images on this machine, it shows
their size on disk. For the others, it asks the registry for the size to pull.`,
		Example: "  mini images plan --subset verified --slice 0:50\n  mini images plan --subset rows.jsonl --json",
		Args:    cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, requests, err := o.prepare(cmd.Context(), a, true)
			var p imagestore.Plan
			if err == nil {
				p, err = dryrun.PlanImages(cmd.Context(), cfg, requests, true, true)
			}
			if err != nil {
				return usage.Wrap(err)
			}
			return a.PrintResult(o.bench.JSON, p, imagePlanDoc(p))
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// imagePlanDoc returns a plan as a table and a summary.
func imagePlanDoc(p imagestore.Plan) *doc.Doc {
	rows := [][]string{{"IMAGE", "STATE", "ON DISK", "TO PULL", "PLATFORM", "INSTANCES"}}
	for _, image := range p.Images {
		state, disk, pull := "pull", "-", "?"
		switch {
		case image.Present:
			state, disk, pull = "here", unit.Size(image.Bytes), "-"
		case image.PullBytes != nil:
			pull = unit.Size(*image.PullBytes)
		}
		rows = append(rows, []string{image.Image, state, disk, pull, cmp.Or(strings.Join(image.Platforms, " "), "?"), fmt.Sprint(image.Instances)})
	}
	d := &doc.Doc{}
	d.Table("llllll", rows)
	for _, image := range p.Images {
		if image.Problem != "" {
			d.Line(2, "%s: %s", image.Image, image.Problem)
		}
	}
	unknown := ""
	if p.Unknown > 0 {
		unknown = fmt.Sprintf("; the size of %d is unknown", p.Unknown)
	}
	d.Line(0, "%s: %d here (%s, shared layers counted each time), %d to pull (%s compressed, shared layers once%s)",
		text.Count(len(p.Images), "image"), p.PresentCount, unit.Size(p.PresentBytes), p.Pull, unit.Size(p.PullBytes), unknown)
	free := "the free space of the engine's disk is unknown"
	if p.FreeBytes != nil {
		free = unit.Size(*p.FreeBytes) + " free on the engine's disk"
	}
	if p.MinFree > 0 {
		free += fmt.Sprintf("; new instances wait while less than %s is free", unit.Size(p.MinFree))
	}
	if p.Budget > 0 {
		free += fmt.Sprintf("; mini keeps at most %s of pulled images", unit.Size(p.Budget))
	}
	d.Line(0, "%s", free)
	return d
}

// pullResult is the output of mini images pull --json.
type pullResult struct {
	Images  []pulledImage `json:"images"`
	Here    int           `json:"here"` // present before the pull
	Pulled  int           `json:"pulled"`
	Failed  int           `json:"failed"`
	Stopped int           `json:"stopped"` // canceled by an interrupt
}

// pulledImage is one image in a pullResult.
type pulledImage struct {
	Image  string `json:"image"`
	State  string `json:"state"` // here, pulled, failed or stopped
	Digest string `json:"digest,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"` // on disk
	Error  string `json:"error,omitempty"`
}

// newImagesPull returns the command mini images pull.
func newImagesPull(a *app.App) *cobra.Command {
	o := &ImagesOptions{}
	cmd := &cobra.Command{
		Use:   "pull --subset SET",
		Short: "Pull the missing images of a dataset",
		Long: `Pulls the images of the rows of a dataset. It waits if a registry limits pulls.
The exit code is 3 if an image could not be pulled.`,
		Example: "  mini images pull --subset verified --slice 0:20\n  mini images pull --subset rows.jsonl -c run.pulls_per_minute=10",
		Args:    cmdutil.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return pull(cmd.Context(), a, o) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().IntVar(&o.parallel, "at-once", 2, "number of images to pull in parallel")
	cmd.Flags().String("image-budget", "", "disk space for pulled images, for example 80GB")
	return cmd
}

func pull(ctx context.Context, a *app.App, o *ImagesOptions) error {
	if o.parallel < 1 {
		return usage.Errorf("--at-once %d: must be at least 1", o.parallel)
	}
	cfg, requests, err := o.prepare(ctx, a, true)
	if err != nil {
		return err
	}
	store, closeStore, err := envopen.OpenImages(ctx, cfg, false, progress.PrintImageEvents(a.Err), func(config *docker.EngineConfig) {
		config.Images.NoWait = true // waiting for space is useless: no worker releases an image meanwhile
		config.PullProgress = progress.PullEvents(func(e runner.Event) {
			_, _ = fmt.Fprintln(a.Err, "mini: pull:", text.Printable(e.Text)) // best effort
		})
	})
	if err != nil {
		return err
	}
	if err := store.CheckBudget(ctx, requests); err != nil {
		return errors.Join(usage.Wrap(err), closeStore())
	}
	result, release := pullImages(ctx, store, requests, o.parallel, a.Err)
	release()
	err = errors.Join(closeStore(), cmdutil.PrintResult(a.Streams, o.bench.JSON, result, pullText(result)))
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil && result.Stopped > 0:
		return fmt.Errorf("%w; run the same command to continue", agent.ErrInterrupted)
	case result.Failed > 0:
		return cmdutil.ErrIncomplete
	}
	return nil
}

// pullImages pulls each image once and prints errors to w. It leases all images until
// release is called, so that the store does not remove one to make room for another.
func pullImages(ctx context.Context, store *imagestore.Store, requests []imagestore.Request, parallel int, w io.Writer) (r pullResult, release func()) {
	var mu sync.Mutex
	var leases []func()
	var group errgroup.Group
	group.SetLimit(parallel)
	seen := map[string]bool{}
	for _, request := range requests {
		if seen[request.Ref] {
			continue
		}
		seen[request.Ref] = true
		request.Requester = ""
		i := len(r.Images)
		mu.Lock()
		r.Images = append(r.Images, pulledImage{Image: request.Ref, State: "pulled"})
		mu.Unlock()
		group.Go(func() error {
			_, present, _ := store.Lookup(ctx, request)
			pulled, release, err := store.Ensure(ctx, request)
			mu.Lock()
			defer mu.Unlock()
			image := &r.Images[i]
			switch {
			case err != nil && ctx.Err() != nil:
				image.State = "stopped"
				r.Stopped++
			case err != nil:
				image.State, image.Error = "failed", err.Error()
				r.Failed++
				line := err.Error()
				if hint := cmdutil.Hint(err); hint != "" {
					line += "; " + hint
				}
				_, _ = fmt.Fprintln(w, "mini:", text.Printable(line)) // best effort
			default:
				leases = append(leases, release)
				image.Digest, image.Bytes = pulled.Digest, pulled.Size
				if r.Pulled++; present {
					r.Pulled--
					r.Here++
					image.State = "here"
				}
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in the result
	return r, func() {
		for _, release := range leases {
			release()
		}
	}
}

// pullText formats the result, one image per line.
func pullText(r pullResult) string {
	var b strings.Builder
	for _, image := range r.Images {
		line := fmt.Sprintf("%-7s %s", image.State, image.Image)
		if image.Bytes > 0 {
			line += fmt.Sprintf("  %s", unit.Size(image.Bytes))
		}
		b.WriteString(text.Printable(line) + "\n")
	}
	fmt.Fprintf(&b, "%s: %d pulled, %d present before, %d failed", text.Count(len(r.Images), "image"), r.Pulled, r.Here, r.Failed)
	if r.Stopped > 0 {
		fmt.Fprintf(&b, ", %d stopped", r.Stopped)
	}
	return b.String() + "\n"
}

// newImagesPrune returns the command mini images prune.
func newImagesPrune(a *app.App) *cobra.Command {
	o := &ImagesOptions{}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove the images that mini pulled or prepared",
		Long: `Removes the images that mini pulled, and the images that it prepared from others
by removing later commits from their git repositories. It keeps images that a
container or another mini process uses, and images that have been given another
name. With --keep-needed, it also keeps the images of the rows that --subset,
--slice and the other flags select.

Containers, volumes and temporary folders that killed mini processes left behind
are removed by mini clean.`,
		Example: "  mini images prune --dry-run\n  mini images prune --keep-needed --subset verified --slice 0:50",
		Args:    cmdutil.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return prune(cmd.Context(), a, o) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.keepNeeded, "keep-needed", false, "keep the images of the selected rows")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would be removed, and remove nothing")
	return cmd
}

func prune(ctx context.Context, a *app.App, o *ImagesOptions) error {
	if !o.keepNeeded && len(o.bench.Datasets.Subsets) > 0 {
		return usage.Errorf("--subset needs --keep-needed: it selects the images to keep")
	}
	cfg, needed, err := o.prepare(ctx, a, o.keepNeeded)
	if err != nil {
		return err
	}
	store, closeStore, err := envopen.OpenImages(ctx, cfg, false, progress.PrintImageEvents(a.Err), func(*docker.EngineConfig) {})
	if err != nil {
		return err
	}
	result, err := store.Prune(ctx, needed, o.dryRun)
	err = errors.Join(err, closeStore())
	if err = errors.Join(err, cmdutil.PrintResult(a.Streams, o.bench.JSON, result, pruneText(result))); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(a.Err, "containers, volumes and temporary folders are removed by mini clean") // best effort
	for _, image := range result.Images {
		if image.Err != "" {
			return cmdutil.ErrIncomplete
		}
	}
	return nil
}

// pruneText formats the result, one image per line.
func pruneText(result imagestore.PruneResult) string {
	var b strings.Builder
	removed := 0
	verb, freed := "removed", "freed"
	if result.DryRun {
		verb, freed = "would remove", "would be freed at least"
	}
	for _, image := range result.Images {
		line := fmt.Sprintf("%s %s  %s", verb, image.Image, unit.Size(image.Bytes))
		if image.Base != "" {
			line += ", prepared from " + image.Base
		}
		switch {
		case image.Err != "":
			line = fmt.Sprintf("failed %s: %s", image.Image, image.Err)
		case !image.Removed:
			line = fmt.Sprintf("kept %s: %s", image.Image, image.KeptReason)
		default:
			removed++
		}
		b.WriteString(text.Printable(line) + "\n")
	}
	fmt.Fprintf(&b, "%s %s of %d that mini pulled or prepared; %s %s\n", verb, text.Count(removed, "image"), len(result.Images), unit.Size(result.Freed), freed)
	return b.String()
}
