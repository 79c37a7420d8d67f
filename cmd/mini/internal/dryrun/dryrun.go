// Package dryrun prints the plans of commands called with --dry-run.
package dryrun

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
)

// Print prints a plan. If obstacle is set, the command cannot start, and Print returns an error.
func Print(s cmdutil.Streams, asJSON bool, plan any, text, obstacle string) error {
	err := cmdutil.PrintResult(s, asJSON, plan, text)
	if err == nil && obstacle != "" {
		err = usage.Errorf("the command cannot start; see the plan")
	}
	return err
}

// PlanText builds the text form of a plan.
type PlanText struct{ strings.Builder }

// Line adds a wrapped line with a name in the first column.
func (s *PlanText) Line(name, format string, args ...any) {
	for i, part := range table.Wrap(text.Printable(fmt.Sprintf(format, args...)), cmdutil.TextWidth-11) {
		fmt.Fprintf(&s.Builder, "%-10s %s\n", LineLabel(i, name), part)
	}
}

// Datasets adds a line for each dataset.
func (s *PlanText) Datasets(sources []datasets.SourceInfo) {
	for i, source := range sources {
		s.Line(LineLabel(i, "dataset"), "%s", rows.FormatSource(source))
	}
}

// Images adds lines about the images to pull and the disk, if there are images.
func (s *PlanText) Images(p Images) {
	if p.Distinct > 0 {
		s.Line("images", "%s", formatImages(p))
		s.Line("disk", "%s", formatDisk(p))
	}
}

// Truncate reports whether the text form omits item i and all later ones of a list of n items. If
// so, it adds a line with the number of omitted items.
func (s *PlanText) Truncate(i, n int) bool {
	if i < maxPlanned || n <= maxPlanned+1 {
		return false
	}
	fmt.Fprintf(&s.Builder, "  ... and %d more; --json lists them all\n", n-i)
	return true
}

// maxPlanned is the number of items that the text form lists of a longer list. It lists all items
// if there is only one more.
const maxPlanned = 20

// LineLabel returns the name for line i of several lines: name for the first one, else "".
func LineLabel(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

// formatImages summarizes which images are local and which must be pulled.
func formatImages(p Images) string {
	if p.Problem != "" {
		return fmt.Sprintf("%d distinct; it is unknown which are local", p.Distinct)
	}
	text := fmt.Sprintf("%d distinct: %d here", p.Distinct, p.Local)
	if p.Local > 0 {
		text += fmt.Sprintf(" (%s, shared layers counted each time)", unit.Size(p.LocalBytes))
	}
	return text + fmt.Sprintf(", %d to pull", p.Pull)
}

// formatDisk estimates the disk space that the images need.
func formatDisk(p Images) string {
	switch {
	case p.Problem != "":
		return "not known without the container engine; see mini doctor"
	case p.Pull == 0:
		return "no image is to be pulled; the run's own files take some MB per instance"
	}
	text := fmt.Sprintf("about %s for the images to pull", unit.Size(p.PullBytes))
	if p.Unknown > 0 {
		text += " (a rough 0.5 GB each where no registry was asked or answered)"
	}
	if p.FreeBytes == nil {
		return text + "; see mini doctor for the free space"
	}
	return text + fmt.Sprintf("; %s are free", unit.Size(*p.FreeBytes))
}

// Images summarizes the images of the instances to run. Distinct, Local and Pull are numbers of
// images.
type Images struct {
	Distinct   int    `json:"distinct"`
	Local      int    `json:"local"`
	LocalBytes int64  `json:"local_bytes"` // shared layers are counted for each image
	Pull       int    `json:"pull"`
	PullBytes  int64  `json:"pull_bytes_estimate"`    // estimated size on disk of the images to pull
	Unknown    int    `json:"pull_unknown,omitempty"` // number of images to pull whose size is unknown
	FreeBytes  *int64 `json:"free_bytes"`             // on the engine's disk; null if unknown
	Problem    string `json:"problem,omitempty"`      // why the engine could not be queried
}

// estimatedImageSize is the assumed size on disk, in bytes, of an image whose size is unknown.
// The 500 official images of SWE-bench Verified take 240 GiB together, shared layers counted
// once (logicstar.ai, "How We Made SWE-Bench 50x Smaller").
const estimatedImageSize = 512 << 20

// compressionRatio is roughly the size of an image on disk divided by its compressed size.
const compressionRatio = 3

// MaxRegistryQueries is the largest number of images for which a dry run queries registries. With
// more images a dry run queries no registry, to stay quick; mini images plan always queries them.
const MaxRegistryQueries = 32

// MeasureImages asks the container engine for the local images, and registries for the sizes of
// the others. If there are more than maxQueries distinct images, it queries no registry and assumes
// estimatedImageSize. On an error, for example if the engine is unreachable, it sets Problem.
func MeasureImages(ctx context.Context, cfg *configs.Resolved, needed []imagestore.Request, maxQueries int) Images {
	distinct := map[string]bool{}
	for _, request := range needed {
		distinct[request.Ref] = true
	}
	images := Images{Distinct: len(distinct)}
	plan, err := PlanImages(ctx, cfg, needed, len(distinct) <= maxQueries, false)
	if err != nil {
		images.Problem = err.Error()
		return images
	}
	images.Local, images.LocalBytes, images.Pull, images.Unknown, images.FreeBytes = plan.PresentCount, plan.PresentBytes, plan.Pull, plan.Unknown, plan.FreeBytes
	images.PullBytes = plan.PullBytes*compressionRatio + int64(plan.Unknown)*estimatedImageSize
	return images
}

// PlanImages plans the pulls of the needed images. useRegistry allows registry queries; querySizes
// also allows queries that registries count as pulls.
func PlanImages(ctx context.Context, cfg *configs.Resolved, needed []imagestore.Request, useRegistry, querySizes bool) (p imagestore.Plan, err error) {
	store, closeStore, err := envopen.OpenImages(ctx, cfg, querySizes, nil, func(config *docker.EngineConfig) {
		if !useRegistry {
			config.Images.Registry = nil
		}
	})
	if err != nil {
		return p, err
	}
	p, err = store.Plan(ctx, needed)
	return p, errors.Join(err, closeStore())
}
