package data

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
)

// newImagesPlan returns the command mini images plan.
func newImagesPlan(s cmdutil.Streams) *cobra.Command {
	o := &imagesOptions{}
	cmd := &cobra.Command{
		Use:   "plan --subset SET",
		Short: "List the images of a dataset and the ones to pull",
		Long: `Lists the images of the rows of a dataset. For images on this machine, it shows
their size on disk. For the others, it asks the registry for the size to pull.`,
		Example: "  mini images plan --subset verified --slice 0:50\n  mini images plan --subset rows.jsonl --json",
		Args:    cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := o.settings()
			if err != nil {
				return err
			}
			requests, err := o.requests(cmd.Context(), s, cfg)
			if err != nil {
				return err
			}
			p, err := dryrun.PlanImages(cmd.Context(), cfg, requests, true, true)
			if err != nil {
				return usage.Wrap(err)
			}
			return cmdutil.PrintResult(s, o.JSON, p, imagePlanText(p))
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
			state, disk, pull = "here", table.SizeText(image.Bytes), "-"
		case image.PullBytes != nil:
			pull = table.SizeText(*image.PullBytes)
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
		text.Count(len(p.Images), "image"), p.PresentCount, table.SizeText(p.PresentBytes), p.Pull, table.SizeText(p.PullBytes))
	if p.Unknown > 0 {
		fmt.Fprintf(&b, "; the size of %d is unknown", p.Unknown)
	}
	b.WriteString(")\n")
	if p.FreeBytes != nil {
		fmt.Fprintf(&b, "%s free on the engine's disk", table.SizeText(*p.FreeBytes))
	} else {
		b.WriteString("the free space of the engine's disk is unknown")
	}
	if p.MinFree > 0 {
		fmt.Fprintf(&b, "; new instances wait while less than %s is free", table.SizeText(p.MinFree))
	}
	if p.Budget > 0 {
		fmt.Fprintf(&b, "; mini keeps at most %s of pulled images", table.SizeText(p.Budget))
	}
	b.WriteString("\n")
	return b.String()
}
