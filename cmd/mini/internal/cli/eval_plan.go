package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
)

// evalPlan is what an evaluation would do, found out without doing any of it.
type evalPlan struct {
	Datasets []datasets.Edition `json:"datasets"`
	Selected int                `json:"selected"` // rows, with a patch or without
	Patches  []plannedPatch     `json:"patches"`
	Known    int                `json:"known"` // of them have a verdict that holds
	// Notes say what is passed over, and what is odd.
	Notes   []string  `json:"notes,omitempty"`
	Folder  string    `json:"folder"`
	RunID   string    `json:"run_id"`
	Workers int       `json:"workers"`
	Timeout float64   `json:"timeout_seconds"`
	Network string    `json:"network"`
	Images  imagePlan `json:"images"`
	// Obstacle is why the evaluation would not start; empty where it would.
	Obstacle string `json:"obstacle,omitempty"`
}

// plannedPatch is one patch and where it would be judged. Verdict is the class
// that it has already.
type plannedPatch struct {
	ID      string         `json:"instance_id"`
	Sample  int            `json:"sample,omitempty"`
	Model   string         `json:"model_name_or_path"`
	Image   string         `json:"image"`
	Verdict verdicts.Class `json:"verdict,omitempty"`
}

// explain is --dry-run.
func (j *evalJob) explain(ctx context.Context, s Streams) error {
	p, err := j.plan(ctx)
	if err != nil {
		return err
	}
	if j.json {
		err = json.NewEncoder(s.Out).Encode(p)
	} else {
		err = p.write(s.Out)
	}
	if err == nil && p.Obstacle != "" {
		err = usagef("it would not start; see the plan")
	}
	return err
}

func (j *evalJob) plan(ctx context.Context) (evalPlan, error) {
	e := j.cfg.Eval
	p := evalPlan{
		Datasets: j.set.Editions, Selected: len(j.selected), Notes: j.notes, Folder: j.dir, RunID: j.runID,
		Workers: evalWorkers(e.Workers), Timeout: e.Timeout, Network: e.Network,
	}
	c := j.config()
	if store, done, err := lookAtImages(ctx, j); err == nil {
		defer done() //nolint:errcheck // it was only looked
		c.Sandboxes = evalBoxes{&sandboxes{images: store}, evalConfig(j.cfg, j.dir, e.Network)}
	}
	known, err := c.Known(ctx, j.dir, j.tasks)
	if err != nil {
		return p, err
	}
	var needed []images.Need
	for i, t := range j.tasks {
		item := plannedPatch{ID: t.Instance.ID, Sample: t.Sample, Model: t.Model, Image: t.Instance.ImageName(), Verdict: known[i]}
		p.Patches = append(p.Patches, item)
		if item.Verdict == "" {
			needed = append(needed, evalNeed(docker.Config{Platform: j.cfg.Environment.Platform}, t.Instance))
		} else {
			p.Known++
		}
	}
	if len(needed) > 0 {
		p.Images = measure(ctx, j.cfg, needed, maxAsked)
		p.Obstacle = p.Images.Problem
	}
	return p, nil
}

// lookAtImages opens the engine to see which images it has.
func lookAtImages(ctx context.Context, j *evalJob) (*images.Store, func() error, error) {
	c, closeRegistry, err := imageConfig(j.cfg, false, nil)
	if err != nil {
		return nil, nil, err
	}
	defer closeRegistry()
	c.Registry = nil
	return openImages(ctx, j.cfg, c, nil)
}

// write shows a plan to people.
func (p evalPlan) write(w io.Writer) error {
	var s strings.Builder
	line := func(name, format string, args ...any) {
		for i, part := range report.Wrap(report.Printable(fmt.Sprintf(format, args...)), helpWidth-11) {
			fmt.Fprintf(&s, "%-10s %s\n", label(i, name), part)
		}
	}
	s.WriteString("dry run: nothing is started\n\n")
	for i, e := range p.Datasets {
		line(label(i, "dataset"), "%s", editionText(e))
	}
	line("patches", "%d, for %s; %d have a verdict that holds, %d to run",
		len(p.Patches), report.Count(p.Selected, "instance"), p.Known, len(p.Patches)-p.Known)
	for i, text := range p.Notes {
		line(label(i, "note"), "%s", text)
	}
	line("sandboxes", "those of the official harness, network %s, %s at once, %g s each", p.Network, report.Count(p.Workers, "patch"), p.Timeout)
	if p.Images.Distinct > 0 {
		line("images", "%s", imagesText(p.Images))
		line("disk", "%s", diskText(p.Images))
	}
	line("folder", "%s, run id %s", p.Folder, p.RunID)
	if p.Obstacle != "" {
		line("BUT", "it would not start: %s", p.Obstacle)
	}
	s.WriteString("\npatches, in order:\n")
	for i, in := range p.Patches {
		if i == maxPlanned && len(p.Patches) > maxPlanned+1 {
			fmt.Fprintf(&s, "  ... and %d more; --json lists them all\n", len(p.Patches)-i)
			break
		}
		s.WriteString(report.Printable(fmt.Sprintf("  %-40s %s", in.ID, cmp.Or(string(in.Verdict), in.Image))) + "\n")
	}
	_, err := io.WriteString(w, s.String())
	return err
}
