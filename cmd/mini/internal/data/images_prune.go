package data

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
)

// pruneOptions are the flags of mini images prune.
type pruneOptions struct {
	imagesOptions
	keep, dry bool
}

// newImagesPrune returns the command mini images prune.
func newImagesPrune(s cmdutil.Streams) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove the images that mini pulled or prepared",
		Long: `Removes the images that mini pulled, and the images that it prepared from others
by removing the future history of their repositories. It keeps images that a
container or another mini process uses, and images that have been given another
name. With --keep-needed, it also keeps the images of the rows that --subset,
--slice and the other flags select.`,
		Example: "  mini images prune --dry-run\n  mini images prune --keep-needed --subset verified --slice 0:50",
		Args:    cmdutil.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	o.flags(cmd.Flags())
	cmd.Flags().BoolVar(&o.keep, "keep-needed", false, "keep the images of the selected rows")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "show what would be removed, and remove nothing")
	return cmd
}

func (o *pruneOptions) run(ctx context.Context, s cmdutil.Streams) error {
	if !o.keep && len(o.Subsets) > 0 {
		return usage.Errorf("--subset needs --keep-needed: it selects the images to keep")
	}
	cfg, err := o.settings()
	if err != nil {
		return err
	}
	var needed []imagestore.Request
	if o.keep {
		if needed, err = o.requests(ctx, s, cfg); err != nil {
			return err
		}
	}
	store, done, err := envopen.OpenImages(ctx, cfg, false, progress.PrintImageEvents(s.Err), func(*docker.EngineConfig) {})
	if err != nil {
		return err
	}
	p, err := store.Prune(ctx, needed, o.dry)
	err = errors.Join(err, done())
	if err = errors.Join(err, cmdutil.PrintResult(s, o.JSON, p, pruneText(p))); err != nil {
		return err
	}
	for _, i := range p.Images {
		if i.Err != "" {
			return cmdutil.ErrIncomplete
		}
	}
	return nil
}

// pruneText formats the result, one image per line.
func pruneText(p imagestore.PruneResult) string {
	var b strings.Builder
	removed := 0
	verb, freed := "removed", "freed"
	if p.DryRun {
		verb, freed = "would remove", "would be freed at least"
	}
	for _, i := range p.Images {
		line := fmt.Sprintf("%s %s  %s", verb, i.Image, table.SizeText(i.Bytes))
		if i.Base != "" {
			line += ", prepared from " + i.Base
		}
		switch {
		case i.Err != "":
			line = fmt.Sprintf("failed %s: %s", i.Image, i.Err)
		case !i.Removed:
			line = fmt.Sprintf("kept %s: %s", i.Image, i.KeptReason)
		default:
			removed++
		}
		b.WriteString(text.Printable(line) + "\n")
	}
	fmt.Fprintf(&b, "%s %s of %d that mini pulled or prepared; %s %s\n", verb, text.Count(removed, "image"), len(p.Images), table.SizeText(p.Freed), freed)
	return b.String()
}
