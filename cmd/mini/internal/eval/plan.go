package eval

import (
	"cmp"
	"context"
	"fmt"

	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/verdicts"
)

// plan describes an evaluation for --dry-run.
type plan struct {
	Datasets []datasets.SourceInfo `json:"datasets"`
	Selected int                   `json:"selected"` // number of rows, with or without a patch
	Patches  []plannedPatch        `json:"patches"`
	Known    int                   `json:"known"` // number of patches with a valid verdict
	// Notes describe skipped patches and datasets that have changed since the run.
	Notes   []string      `json:"notes,omitempty"`
	Folder  string        `json:"folder"` // for the verdicts
	RunID   string        `json:"run_id"`
	Workers int           `json:"workers"`
	Timeout float64       `json:"timeout_seconds"`
	Network string        `json:"network"`
	Images  dryrun.Images `json:"images"`
	// Obstacle is the reason why the evaluation cannot start; "" if it can.
	Obstacle string `json:"obstacle,omitempty"`
}

// plannedPatch is a patch and the image of its container. Verdict is its valid
// verdict; "" if there is none.
type plannedPatch struct {
	ID         string         `json:"instance_id"`
	Repetition int            `json:"sample,omitempty"`
	Model      string         `json:"model_name_or_path"`
	Image      string         `json:"image"`
	Verdict    verdicts.Class `json:"verdict,omitempty"`
}

// plan returns the plan of the evaluation. It does not pull images.
func (j *job) plan(ctx context.Context) (plan, error) {
	e := j.cfg.Eval
	p := plan{
		Datasets: j.set.Sources, Selected: len(j.selected), Notes: j.notes, Folder: j.dir, RunID: j.options.runID,
		Workers: WorkerCount(e.Workers), Timeout: e.Timeout, Network: e.Network,
	}
	var err error
	if j.key, err = readVerdictKey(); err != nil {
		return p, err
	}
	c := j.config()
	offline := func(e *docker.EngineConfig) { e.Images.Registry = nil }
	inCluster := configs.UsesCluster(j.cfg.Environment.Class)
	if !inCluster {
		if store, closeStore, err := envopen.OpenImages(ctx, j.cfg, false, nil, offline); err == nil {
			defer closeStore() //nolint:errcheck // only reads
			c.Sandboxes = Sandboxes{&envopen.Sandboxes{Images: store}, containerConfig(j.cfg, j.dir, e.Network), 0}
		}
	}
	reusable, err := c.FindReusable(ctx, j.dir, j.tasks)
	if err != nil {
		return p, err
	}
	var needed []imagestore.Request
	for i, t := range j.tasks {
		item := plannedPatch{
			ID: t.Instance.ID, Repetition: t.Repetition, Model: t.Model, Image: t.Instance.ImageName(), Verdict: reusable[i],
		}
		p.Patches = append(p.Patches, item)
		if item.Verdict == "" {
			needed = append(needed, imageRequest(docker.Config{Platform: j.cfg.Environment.Platform}, t.Instance))
		} else {
			p.Known++
		}
	}
	if len(needed) > 0 && !inCluster {
		p.Images = dryrun.MeasureImages(ctx, j.cfg, needed, dryrun.MaxRegistryQueries)
		p.Obstacle = p.Images.Problem
	}
	return p, nil
}

// text formats the plan for people.
func (p plan) text() string {
	var s dryrun.PlanText
	line := s.Line
	s.WriteString("dry run: nothing is started\n\n")
	s.Datasets(p.Datasets)
	line("patches", "%d, for %s; %d with a valid verdict, %d to run",
		len(p.Patches), text.Count(p.Selected, "instance"), p.Known, len(p.Patches)-p.Known)
	for i, note := range p.Notes {
		line(dryrun.LineLabel(i, "note"), "%s", note)
	}
	line("sandboxes", "as in the official harness, network %s, %s, timeout %g s",
		p.Network, text.Count(p.Workers, "worker"), p.Timeout)
	s.Images(p.Images)
	line("folder", "%s, run id %s", p.Folder, p.RunID)
	if p.Obstacle != "" {
		line("problem", "the evaluation cannot start: %s", p.Obstacle)
	}
	s.WriteString("\npatches, in order:\n")
	for i, patch := range p.Patches {
		if s.Truncate(i, len(p.Patches)) {
			break
		}
		s.WriteString(text.Printable(fmt.Sprintf("  %-40s %s", patch.ID, cmp.Or(string(patch.Verdict), patch.Image))) + "\n")
	}
	return s.String()
}
