package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/env/docker/images/registry"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
)

func newImages(s Streams) *cobra.Command {
	return group(&cobra.Command{
		Use:   "images",
		Short: "Plan, pull and prune the images of a dataset",
		Long: `Looks after the images that the rows of a dataset run in. mini bench pulls them
by itself, a few ahead of its workers; these commands do it beforehand, and
take away afterwards what mini pulled.`,
		Example: `  mini images plan --subset verified
  mini images pull --subset verified --slice 0:20
  mini images prune --dry-run`,
	}, newImagesPlan(s), newImagesPull(s), newImagesPrune(s))
}

// imagesOptions are the flags that the commands for images share: those of
// mini bench that say which rows, and with which settings.
type imagesOptions struct {
	benchOptions
}

func (o *imagesOptions) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	o.subsetFlags.flags(f)
	o.selectionFlags(f)
	o.set = f
	f.StringArrayVarP(&o.config, "config", "c", nil, "YAML `FILE` or key.sub=value; repeatable")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

// settings are what mini bench would run with. No model is needed.
func (o *imagesOptions) settings() (*configs.Resolved, error) {
	cfg, err := o.merge(o.shipped()...)
	if err != nil {
		return nil, err
	}
	_, err = containerConfig(cfg, "")
	return cfg, err
}

// needs are the images of the rows that were picked, in order.
func (o *imagesOptions) needs(ctx context.Context, s Streams, cfg *configs.Resolved) ([]images.Need, error) {
	if len(o.subsets) == 0 {
		return nil, usagef("--subset is needed: demo, verified, lite ..., or a file of rows; mini datasets list says more")
	}
	w, err := o.load(ctx, s)
	if err != nil {
		return nil, err
	}
	return imageNeeds(cfg, w.rows), nil
}

// openImages connects to the engine. done is to be called at the end.
func openImages(
	ctx context.Context, cfg *configs.Resolved, c *images.Config, progress func(docker.PullProgress),
) (store *images.Store, done func() error, err error) {
	engine, err := docker.Open(ctx, docker.EngineConfig{
		Images: c, PullTimeout: duration(cfg.Environment.PullTimeout), PullProgress: progress,
	})
	if err != nil {
		return nil, nil, before(err)
	}
	return engine.Images(), engine.Close, nil
}

// imageConfig is how images are looked after; with sizes, registries are asked
// for them also where that counts as a pull. done is to be called at the end.
func imageConfig(cfg *configs.Resolved, sizes bool, tell func(images.Note)) (c *images.Config, done func(), err error) {
	dir, err := cacheDir()
	if err != nil {
		return nil, nil, err
	}
	budget, err := configs.DiskSize(cfg.Run.ImageBudget)
	if err != nil {
		return nil, nil, usagef("run.image_budget: %w", err)
	}
	floor, err := configs.DiskSize(cfg.Run.MinFreeDisk)
	if err != nil {
		return nil, nil, usagef("run.min_free_disk: %w", err)
	}
	keys, err := registry.New("mini/"+Version, budget > 0 || sizes)
	if err != nil {
		return nil, nil, err
	}
	return &images.Config{
		Registry: keys, Dir: filepath.Join(dir, "images"), Budget: budget, MinFree: floor,
		Prefetch: cfg.Run.Prefetch, PullsPerMinute: cfg.Run.PullsPerMinute, Tell: tell,
	}, keys.Close, nil
}

// imageNeed is the image of an instance's sandbox.
func imageNeed(cfg *configs.Resolved, in datasets.Instance) images.Need {
	return images.Need{Ref: imageOf(cfg, in), Platform: cfg.Environment.Platform, For: in.ID}
}

func imageNeeds(cfg *configs.Resolved, rows []datasets.Instance) []images.Need {
	needs := make([]images.Need, len(rows))
	for i, in := range rows {
		needs[i] = imageNeed(cfg, in)
	}
	return needs
}

// Expect implements runner.Expecting: images are pulled ahead of the workers.
func (s *sandboxes) Expect(ctx context.Context, todo []datasets.Instance) (stop func()) {
	if s.images == nil {
		return func() {}
	}
	return s.images.Expect(ctx, s.needs(todo))
}

// fit finds a budget that is too small for an image, before anything is made.
func (s *sandboxes) fit(ctx context.Context, todo []datasets.Instance) error {
	if s.images == nil || len(todo) == 0 {
		return nil
	}
	return s.images.CheckBudget(ctx, s.needs(todo))
}

// done are the instances that are left as they are, since they have a result.
func (j *job) done() map[string]bool {
	done := map[string]bool{}
	for _, in := range j.earlier.Instances {
		done[in.ID] = !j.redo && in.Missing(j.cfg.Run.Attempts) == 0
	}
	return done
}

// missing is how many results there are to be made.
func (j *job) missing() int {
	k := j.cfg.Run.Attempts
	n := k * len(j.work.rows)
	if j.redo {
		return n
	}
	earlier := map[string]runner.Instance{}
	for _, in := range j.earlier.Instances {
		earlier[in.ID] = in
	}
	for _, in := range j.work.rows {
		n -= k - earlier[in.ID].Missing(k)
	}
	return n
}

// todo are the rows that are to be run.
func (j *job) todo() (rows []datasets.Instance) {
	done := j.done()
	for _, in := range j.work.rows {
		if !done[in.ID] {
			rows = append(rows, in)
		}
	}
	return rows
}

// imageEvents tells of what happens to images as a run tells of everything.
func imageEvents(emit func(runner.Event)) func(images.Note) {
	return func(n images.Note) {
		phase := runner.Phase("")
		switch n.Kind {
		case images.Limited, images.Retry:
			phase = runner.Waiting
			emit(runner.Event{Type: runner.Pull, Instance: n.For, Text: n.Image + ": " + n.Text, Elapsed: n.Wait.Seconds()})
		case images.Room:
			phase = runner.Waiting
			emit(runner.Event{Type: runner.Warning, Instance: n.For, Text: n.Image + ": " + n.Text})
		case images.Resumed:
			phase = runner.Starting
		case images.Removed:
			emit(runner.Event{Type: runner.Pull, Text: n.Image + ": " + n.Text})
		case images.Problem:
			emit(runner.Event{Type: runner.Warning, Text: n.Text})
		}
		if phase != "" && n.For != "" {
			emit(runner.Event{Type: runner.Doing, Phase: phase, Instance: n.For, Text: n.Image, Elapsed: n.Wait.Seconds()})
		}
	}
}

// sayNote tells people of what happens to images outside a run.
func sayNote(w io.Writer) func(images.Note) {
	return func(n images.Note) {
		if n.Kind == images.Resumed {
			return
		}
		text := n.Text
		if n.Image != "" {
			text = n.Image + ": " + text
		}
		_, _ = fmt.Fprintln(w, "mini:", report.Printable(text)) // only for people
	}
}
