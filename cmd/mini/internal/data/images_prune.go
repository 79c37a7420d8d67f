package data

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
)

// newImagesPrune returns the command mini images prune.
func newImagesPrune(a *app.App) *cobra.Command {
	o := &imagesOptions{}
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

func prune(ctx context.Context, a *app.App, o *imagesOptions) error {
	if !o.keepNeeded && len(o.bench.Subsets) > 0 {
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
