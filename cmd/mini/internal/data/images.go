package data

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
)

// NewImages returns the command mini images.
func NewImages(s cmdutil.Streams) *cobra.Command {
	return cmdutil.WithSubcommands(&cobra.Command{
		Use:   "images",
		Short: "List, pull and prune the images of a dataset",
		Long: `Manages the images of the rows of a dataset. mini bench pulls images itself, a
few ahead of its workers. These commands pull them in advance and remove them
afterwards.`,
		Example: `  mini images plan --subset verified
  mini images pull --subset verified --slice 0:20
  mini images prune --dry-run`,
	}, newImagesPlan(s), newImagesPull(s), newImagesPrune(s))
}

// imagesOptions are the flags that the subcommands of mini images share. mini bench
// has the same flags for the selection of rows and settings.
type imagesOptions struct {
	bench.Options
}

// addFlags adds the shared flags to f.
func (o *imagesOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	o.DatasetFlags.AddFlags(f)
	o.AddSelectionFlags(f)
	o.FlagSet = f
	f.StringArrayVarP(&o.Config, "config", "c", nil, "YAML `FILE` or key.sub=value; repeatable")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
}

// settings returns the settings that mini bench would use with the same flags. It
// does not require a model.
func (o *imagesOptions) settings() (*configs.Resolved, error) {
	cfg, err := o.Merge(o.BuiltinConfigs()...)
	if err != nil {
		return nil, err
	}
	_, err = envopen.ContainerConfig(cfg, "")
	return cfg, err
}

// requests returns a request for the image of each selected row, in the order of the
// rows.
func (o *imagesOptions) requests(ctx context.Context, s cmdutil.Streams, cfg *configs.Resolved) ([]imagestore.Request, error) {
	if len(o.Subsets) == 0 {
		return nil, usage.Errorf("--subset is required: a dataset such as demo, verified or lite, or a file; mini datasets list shows datasets")
	}
	input, err := o.LoadRows(ctx, s)
	if err != nil {
		return nil, err
	}
	return envopen.ImageRequests(cfg, input.Rows), nil
}
