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
	keepNeeded, dryRun bool
}

// newImagesPrune returns the command mini images prune.
func newImagesPrune(s cmdutil.Streams) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove the images that mini pulled or prepared",
		Long: `Removes the images that mini pulled, and the images that it prepared from others
by removing later commits from their git repositories. It keeps images that a
container or another mini process uses, and images that have been given another
name. With --keep-needed, it also keeps the images of the rows that --subset,
--slice and the other flags select.`,
		Example: "  mini images prune --dry-run\n  mini images prune --keep-needed --subset verified --slice 0:50",
		Args:    cmdutil.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.keepNeeded, "keep-needed", false, "keep the images of the selected rows")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would be removed, and remove nothing")
	return cmd
}

func (o *pruneOptions) run(ctx context.Context, s cmdutil.Streams) error {
	if !o.keepNeeded && len(o.Subsets) > 0 {
		return usage.Errorf("--subset needs --keep-needed: it selects the images to keep")
	}
	cfg, err := o.settings()
	if err != nil {
		return err
	}
	var needed []imagestore.Request
	if o.keepNeeded {
		if needed, err = o.requests(ctx, s, cfg); err != nil {
			return err
		}
	}
	store, closeStore, err := envopen.OpenImages(ctx, cfg, false, progress.PrintImageEvents(s.Err), func(*docker.EngineConfig) {})
	if err != nil {
		return err
	}
	result, err := store.Prune(ctx, needed, o.dryRun)
	err = errors.Join(err, closeStore())
	if err = errors.Join(err, cmdutil.PrintResult(s, o.JSON, result, pruneText(result))); err != nil {
		return err
	}
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
		line := fmt.Sprintf("%s %s  %s", verb, image.Image, table.SizeText(image.Bytes))
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
	fmt.Fprintf(&b, "%s %s of %d that mini pulled or prepared; %s %s\n", verb, text.Count(removed, "image"), len(result.Images), table.SizeText(result.Freed), freed)
	return b.String()
}
