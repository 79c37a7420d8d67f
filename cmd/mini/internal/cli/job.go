package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// job is a batch that is ready to be run.
type job struct {
	*benchOptions
	cfg    *configs.Resolved
	work   workload
	agent  *agent.Agent
	models runner.Models // nil for a dry run
	isDemo bool
	dir    string
}

// run works the batch and says how it ended.
func (j *job) run(ctx, kill context.Context, s Streams) error {
	p, err := newProgress(j.progress, s, heading{
		dataset: j.work.dataset.Name, model: modelName(j.cfg), folder: j.dir, ids: ids(j.work.rows),
	})
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // it was closed before, unless nothing was run
	// The engine is asked before the folder is made: where none answers, no
	// empty run is left behind.
	var log *runner.Log
	boxes, err := newSandboxes(ctx, kill, j.cfg, j.isDemo, j.dir, s.Err, func(e runner.Event) { log.Emit(e) })
	if err != nil {
		return err
	}
	folder, err := runner.Open(j.dir)
	if err != nil {
		return errors.Join(before(err), boxes.Close())
	}
	defer folder.Close() //nolint:errcheck // the lock ends with the process
	log = runner.NewLog(folder, p.Event)
	b := runner.Batch{
		Folder: folder, Agent: j.agent, Sandboxes: boxes, Models: j.models, ModelName: modelName(j.cfg), Log: log,
		Workers: j.cfg.Run.Workers, MaxTries: j.cfg.Run.MaxTries, Redo: j.redo,
	}
	sum, err := j.begin(ctx, p.Writer(), &b, boxes.class)
	err = errors.Join(err, p.Close()) // the summary goes on the screen as it was
	return errors.Join(err, boxes.Close(), j.conclude(ctx, s, sum, folder, err))
}

// explain is --dry-run.
func (j *job) explain(ctx context.Context, s Streams) error {
	p, err := newPlan(ctx, j)
	if err != nil {
		return err
	}
	if j.json {
		return json.NewEncoder(s.Out).Encode(p)
	}
	return printPlan(s.Out, p)
}

// begin writes down what is run, says it, and runs it.
func (j *job) begin(ctx context.Context, said io.Writer, b *runner.Batch, environmentClass string) (runner.Summary, error) {
	config, err := j.cfg.YAML()
	if err != nil {
		return runner.Summary{}, err
	}
	if b.Header, err = headerOf(j.cfg, environmentClass); err != nil {
		return runner.Summary{}, err
	}
	changed, err := b.Folder.Begin(runner.Manifest{
		MiniVersion: Version,
		Dataset:     j.work.dataset,
		Model:       runner.Named{Class: j.cfg.Model.Class, Name: modelName(j.cfg)},
		Environment: runner.Named{Class: environmentClass, Name: j.cfg.Environment.Image},
	}, config)
	if err != nil {
		return runner.Summary{}, err
	}
	if err := announce(said, j.cfg, j.work.dataset.Name, len(j.work.rows), environmentClass, b.Folder.Dir()); err != nil {
		return runner.Summary{}, err
	}
	if changed {
		b.Log.Emit(runner.Event{Type: runner.Warning, Text: "an earlier session in this folder had another configuration; its results stay"})
	}
	return b.Run(ctx, j.work.rows)
}

// announce says in two lines what is about to happen.
func announce(w io.Writer, cfg *configs.Resolved, set string, n int, class, dir string) error {
	_, err := fmt.Fprintf(w, "mini bench: %s, %s, %s, %s sandboxes, model %s\nfiles go to %s\n",
		report.Printable(set), report.Count(n, "instance"), report.Count(cfg.Run.Workers, "worker"), class, report.Printable(modelName(cfg)), report.Printable(dir))
	if err == nil && cfg.Model.Class == "scripted" {
		_, err = fmt.Fprintln(w, "the replies are scripted: they come from a file, and no model is called; everything else is real")
	}
	return err
}

// conclude writes the summary and picks how the command ends.
func (j *job) conclude(ctx context.Context, s Streams, sum runner.Summary, folder *runner.Folder, failed error) error {
	if failed != nil && sum.Instances == 0 {
		return nil // it never came to a run
	}
	err := folder.End(sum)
	if j.json {
		err = errors.Join(err, json.NewEncoder(s.Out).Encode(map[string]any{"run": folder.Dir(), "summary": sum}))
	} else {
		err = errors.Join(err, glance(s.Out, sum, folder.Dir(), ids(j.work.rows)))
	}
	switch {
	case err != nil || failed != nil:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w; start again with -o %s to go on", agent.ErrInterrupted, folder.Dir())
	case !sum.Complete():
		return errIncomplete
	}
	return nil
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// folder is where the run goes.
func (o *benchOptions) folder() string {
	if o.output != "" {
		return o.output
	}
	var names []string
	for _, s := range o.subsets {
		names = append(names, strings.Trim(unfit.ReplaceAllString(filepath.Base(s), "-"), ".-"))
	}
	name := strings.Join(names, "+")
	return filepath.Join("mini-runs", name+"-"+time.Now().Format("20060102-150405"))
}

// headerOf is what the journals of a run have in common.
func headerOf(cfg *configs.Resolved, environmentClass string) (trajectories.Header, error) {
	redacted := cfg.Redacted()
	config, err := json.Marshal(map[string]any{
		"agent": redacted.Agent, "model": redacted.Model, "environment": redacted.Environment, "run": redacted.Run,
	})
	return trajectories.Header{
		MiniVersion: Version, ModelClass: cfg.Model.Class, EnvironmentClass: environmentClass, Config: config,
	}, err
}
