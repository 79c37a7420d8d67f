package data

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
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

// imagesOptions are the flags of the subcommands of mini images: those of mini bench for the selection
// of rows and settings, and the subcommands' own.
type imagesOptions struct {
	bench              bench.Options
	parallel           int  // of pull
	keepNeeded, dryRun bool // of prune
}

// addFlags adds the flags that the subcommands share to f.
func (o *imagesOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	o.bench.DatasetFlags.AddFlags(f)
	o.bench.AddSelectionFlags(f)
	o.bench.FlagSet = f
	f.StringArrayVarP(&o.bench.Config, "config", "c", nil, "YAML `FILE` or key.sub=value; repeatable")
	f.BoolVar(&o.bench.JSON, "json", false, "print JSON")
}

// prepare returns the settings that mini bench would use with the same flags and, if withRows is set, a
// request for the image of each selected row, in the order of the rows. It does not require a model.
func (o *imagesOptions) prepare(ctx context.Context, a *app.App, withRows bool) (*configs.Resolved, []imagestore.Request, error) {
	cfg, err := a.ConfigWithoutModel(ctx, &o.bench.Flags, o.bench.BuiltinConfigs()...)
	if err == nil {
		_, err = envopen.ContainerConfig(cfg, "")
	}
	if err != nil || !withRows {
		return cfg, nil, err
	}
	if len(o.bench.Subsets) == 0 {
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
	o := &imagesOptions{}
	cmd := &cobra.Command{
		Use:   "plan --subset SET",
		Short: "List the images of a dataset and the ones to pull",
		Long: `Lists the images of the rows of a dataset. For images on this machine, it shows
their size on disk. For the others, it asks the registry for the size to pull.`,
		Example: "  mini images plan --subset verified --slice 0:50\n  mini images plan --subset rows.jsonl --json",
		Args:    cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, requests, err := o.prepare(cmd.Context(), a, true)
			if err != nil {
				return err
			}
			p, err := dryrun.PlanImages(cmd.Context(), cfg, requests, true, true)
			if err != nil {
				return usage.Wrap(err)
			}
			return cmdutil.PrintResult(a.Streams, o.bench.JSON, p, imagePlanText(p))
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// imagePlanText formats a plan as a table and a summary.
func imagePlanText(p imagestore.Plan) string {
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
	var b strings.Builder
	b.WriteString(cmdutil.FormatColumns(rows))
	for _, image := range p.Images {
		if image.Problem != "" {
			fmt.Fprintf(&b, "%s\n", text.Printable("  "+image.Image+": "+image.Problem))
		}
	}
	fmt.Fprintf(&b, "%s: %d here (%s, shared layers counted each time), %d to pull (%s compressed, shared layers once",
		text.Count(len(p.Images), "image"), p.PresentCount, unit.Size(p.PresentBytes), p.Pull, unit.Size(p.PullBytes))
	if p.Unknown > 0 {
		fmt.Fprintf(&b, "; the size of %d is unknown", p.Unknown)
	}
	b.WriteString(")\n")
	if p.FreeBytes != nil {
		fmt.Fprintf(&b, "%s free on the engine's disk", unit.Size(*p.FreeBytes))
	} else {
		b.WriteString("the free space of the engine's disk is unknown")
	}
	if p.MinFree > 0 {
		fmt.Fprintf(&b, "; new instances wait while less than %s is free", unit.Size(p.MinFree))
	}
	if p.Budget > 0 {
		fmt.Fprintf(&b, "; mini keeps at most %s of pulled images", unit.Size(p.Budget))
	}
	b.WriteString("\n")
	return b.String()
}
