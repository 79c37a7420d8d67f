package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/runner/report"
)

// pruneOptions are the flags of mini images prune.
type pruneOptions struct {
	imagesOptions
	keep, dry bool
}

func newImagesPrune(s Streams) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove the images that mini pulled, and no others",
		Long: `Removes images that mini itself pulled and that no container and no other mini
uses, and those that it prepared of other images, whose repositories it
scrubbed once for all attempts. With --keep-needed those of the rows that
--subset and its companions pick stay. An image that got another name since is
left alone.`,
		Example: "  mini images prune --dry-run\n  mini images prune --keep-needed --subset verified --slice 0:50",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	o.flags(cmd.Flags())
	cmd.Flags().BoolVar(&o.keep, "keep-needed", false, "keep the images of these rows")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "say what would be removed, and remove nothing")
	return cmd
}

func (o *pruneOptions) run(ctx context.Context, s Streams) error {
	if !o.keep && len(o.subsets) > 0 {
		return usagef("--subset says which images stay, with --keep-needed; without either all go that mini pulled")
	}
	cfg, err := o.settings()
	if err != nil {
		return err
	}
	var needed []images.Need
	if o.keep {
		if needed, err = o.needs(ctx, s, cfg); err != nil {
			return err
		}
	}
	c, closeRegistry, err := imageConfig(cfg, false, sayNote(s.Err))
	if err != nil {
		return err
	}
	defer closeRegistry()
	store, done, err := openImages(ctx, cfg, c, nil)
	if err != nil {
		return err
	}
	p, err := store.Prune(ctx, needed, o.dry)
	err = errors.Join(err, done())
	if o.json {
		err = errors.Join(err, json.NewEncoder(s.Out).Encode(p))
	} else {
		err = errors.Join(err, printPruned(s.Out, p))
	}
	if err != nil {
		return err
	}
	for _, i := range p.Images {
		if i.Err != "" {
			return errIncomplete
		}
	}
	return nil
}

func printPruned(w io.Writer, p images.Pruned) error {
	var b strings.Builder
	removed := 0
	word, freed := "removed", "freed"
	if p.DryRun {
		word, freed = "would remove", "would be freed at least"
	}
	for _, i := range p.Images {
		text := fmt.Sprintf("%s %s  %s", word, i.Image, report.Size(i.Bytes))
		if i.Of != "" {
			text += ", prepared from " + i.Of
		}
		switch {
		case i.Err != "":
			text = fmt.Sprintf("failed %s: %s", i.Image, i.Err)
		case !i.Removed:
			text = fmt.Sprintf("kept %s: %s", i.Image, i.Kept)
		default:
			removed++
		}
		b.WriteString(report.Printable(text) + "\n")
	}
	fmt.Fprintf(&b, "%s %s of %d that mini pulled or made; %s %s\n", word, report.Count(removed, "image"), len(p.Images), report.Size(p.Freed), freed)
	_, err := io.WriteString(w, b.String())
	return err
}
