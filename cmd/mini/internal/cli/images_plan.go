package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/runner/report"
)

func newImagesPlan(s Streams) *cobra.Command {
	o := &imagesOptions{}
	cmd := &cobra.Command{
		Use:   "plan --subset SET",
		Short: "Say which images are here, and what is to be pulled",
		Long: `Lists the images of a dataset's rows: which are here and what they take on disk,
and for the others what their registry says is to be fetched.`,
		Example: "  mini images plan --subset verified --slice 0:50\n  mini images plan --subset rows.jsonl --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := o.settings()
			if err != nil {
				return err
			}
			needs, err := o.needs(cmd.Context(), s, cfg)
			if err != nil {
				return err
			}
			p, err := planImages(cmd.Context(), cfg, needs, true, true)
			if err != nil {
				return before(err)
			}
			if o.json {
				return json.NewEncoder(s.Out).Encode(p)
			}
			return printImagePlan(s.Out, p)
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

// planImages finds out about images; ask also at their registries, with sizes
// also where that counts as a pull.
func planImages(ctx context.Context, cfg *configs.Resolved, needs []images.Need, ask, sizes bool) (p images.Plan, err error) {
	c, closeRegistry, err := imageConfig(cfg, sizes, nil)
	if err != nil {
		return p, err
	}
	defer closeRegistry()
	if !ask {
		c.Registry = nil
	}
	store, done, err := openImages(ctx, cfg, c, nil)
	if err != nil {
		return p, err
	}
	p, err = store.Plan(ctx, needs)
	return p, errors.Join(err, done())
}

func printImagePlan(w io.Writer, p images.Plan) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = report.Printable(cells[i])
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) // Flush reports it
	}
	row("IMAGE", "STATE", "ON DISK", "TO PULL", "PLATFORM", "INSTANCES")
	for _, i := range p.Images {
		state, disk, pull := "pull", "-", "?"
		switch {
		case i.Here:
			state, disk, pull = "here", report.Size(i.Bytes), "-"
		case i.PullBytes != nil:
			pull = report.Size(*i.PullBytes)
		}
		row(i.Image, state, disk, pull, cmp.Or(strings.Join(i.Platforms, " "), "?"), fmt.Sprint(i.Instances))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for _, i := range p.Images {
		if i.Problem != "" {
			fmt.Fprintf(&b, "%s\n", report.Printable("  "+i.Image+": "+i.Problem))
		}
	}
	fmt.Fprintf(&b, "%s: %d here (%s, shared layers counted each time), %d to pull (%s compressed, shared layers once",
		report.Count(len(p.Images), "image"), p.Here, report.Size(p.HereBytes), p.Pull, report.Size(p.PullBytes))
	if p.Unknown > 0 {
		fmt.Fprintf(&b, "; of %d it is not known", p.Unknown)
	}
	b.WriteString(")\n")
	if p.FreeBytes != nil {
		fmt.Fprintf(&b, "%s are free on the engine's disk", report.Size(*p.FreeBytes))
	} else {
		b.WriteString("what is free on the engine's disk is not known here")
	}
	if p.MinFree > 0 {
		fmt.Fprintf(&b, "; starts wait below %s", report.Size(p.MinFree))
	}
	if p.Budget > 0 {
		fmt.Fprintf(&b, "; mini keeps %s of what it pulls", report.Size(p.Budget))
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}
