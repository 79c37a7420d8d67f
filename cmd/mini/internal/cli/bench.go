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

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// benchOptions are the flags of mini bench.
type benchOptions struct {
	configFlags
	subset    string
	selection datasets.Selection
	output    string
	workers   int
	redo      bool
	quiet     bool
	json      bool
}

func newBench(kill context.Context, s Streams) *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench --subset SET",
		Short: "Let the agent work on the instances of a dataset, each in a container of its own",
		Long: `Works on the instances of a dataset, each in a container of its own, and leaves
predictions, results and trajectories in the folder of the run. Started again
with the same -o it goes on where it stopped: instances with a result are left
as they are, the others are run.

Ctrl-C once ends what runs and keeps its work; twice kills it. Nothing is left
behind either way.`,
		Example: `  mini bench --subset demo
  mini bench --subset verified.jsonl.gz --slice 0:20 -w 8 -m gpt-5-mini -o runs/a
  mini bench --subset rows.jsonl --model-class scripted -c model.replies=replies.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd.Context(), kill, s, o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.subset, "subset", "", "demo, or a `FILE` of SWE-bench rows (.json, .jsonl, also .gz)")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` of the run (default mini-runs/<subset>-<time>)")
	f.IntVarP(&o.workers, "workers", "w", 1, "instances worked on at once")
	o.flags(f)
	f.StringArrayVarP(&o.selection.IDs, "instance", "i", nil, "only this `ID`; repeatable")
	f.StringVar(&o.selection.Filter, "filter", "", "only ids that begin with a match of this `REGEX`")
	f.StringVar(&o.selection.Slice, "slice", "", "rows `START:STOP:STEP`, as in Python, after the filter")
	f.BoolVar(&o.selection.Shuffle, "shuffle", false, "mix the rows first, the same way for the same seed")
	f.Uint64Var(&o.selection.Seed, "seed", 42, "`NUMBER` for --shuffle")
	f.BoolVar(&o.redo, "redo-existing", false, "run also instances that have a result; what they had is kept")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show only what ended")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on stdout")
	return cmd
}

// runBench is `mini bench`, from flags to files.
func runBench(ctx, kill context.Context, s Streams, o *benchOptions) error {
	if o.subset == "" {
		return usagef("--subset is needed: demo, or a file of SWE-bench rows; see mini bench --help")
	}
	cfg, err := o.resolveBench()
	if err != nil {
		return err
	}
	work, err := o.load(ctx)
	if err != nil {
		return err
	}
	rows := work.rows
	a, err := checkAgent(cfg, rows)
	if err != nil {
		return err
	}
	models, err := newModels(cfg, o.subset == demoSubset, rows)
	if err != nil {
		return err
	}
	if _, err := containerConfig(cfg, ""); err != nil {
		return err
	}
	folder, err := runner.Open(o.folder())
	if err != nil {
		return err
	}
	defer folder.Close() //nolint:errcheck // the lock ends with the process
	log := runner.NewLog(folder, report.NewPlain(s.Err, o.quiet, ids(rows)).Event)
	boxes, err := newSandboxes(ctx, kill, cfg, o.subset == demoSubset, folder.Dir(), s.Err, log.Emit)
	if err != nil {
		return err
	}
	b := runner.Batch{
		Folder: folder, Agent: a, Sandboxes: boxes, Models: models, ModelName: modelName(cfg), Log: log,
		Workers: cfg.Run.Workers, MaxTries: cfg.Run.MaxTries, Redo: o.redo,
	}
	sum, err := o.work(ctx, s, cfg, work, &b, boxes.class)
	return errors.Join(err, boxes.Close(), o.conclude(ctx, s, sum, folder, err))
}

func (o *benchOptions) resolveBench() (*configs.Resolved, error) {
	layers := []string{"swebench"}
	if o.subset == demoSubset {
		layers = append(layers, "demo")
	}
	if o.set.Changed("workers") {
		o.config = append(o.config, fmt.Sprintf("run.workers=%d", o.workers))
	}
	return o.resolve(layers...)
}

// workload is the rows of a run and where they are from. The other rows of the
// dataset are let go: a run may last for days.
type workload struct {
	dataset runner.Dataset
	rows    []datasets.Instance
}

// load reads the dataset and picks its rows.
func (o *benchOptions) load(ctx context.Context) (workload, error) {
	set, err := loadSubset(ctx, o.subset)
	if err != nil {
		return workload{}, err
	}
	rows, err := o.selection.Apply(set.Instances)
	if err != nil {
		return workload{}, &usageError{err}
	}
	if len(rows) == 0 {
		return workload{}, usagef("no instance is left of the %d in %s after --instance, --filter and --slice", len(set.Instances), o.subset)
	}
	return workload{
		dataset: runner.Dataset{
			Name: set.Name, SHA256: set.SHA256, Rows: len(set.Instances), Selected: len(rows), Selection: o.selection,
		},
		rows: rows,
	}, nil
}

// checkAgent finds every mistake in prompts before a model is called, also
// those that only some rows bring out.
func checkAgent(cfg *configs.Resolved, rows []datasets.Instance) (*agent.Agent, error) {
	a, err := agent.New(cfg.Agent)
	if err != nil {
		return nil, cfg.Locate(err)
	}
	for _, in := range rows {
		if err := a.Check(agent.Task{Text: in.ProblemStatement, Instance: in.Fields()}); err != nil {
			return nil, fmt.Errorf("%w (instance %s)", cfg.Locate(err), in.ID)
		}
	}
	return a, nil
}

// work writes down what is run, says it, and runs it.
func (o *benchOptions) work(
	ctx context.Context, s Streams, cfg *configs.Resolved, w workload, b *runner.Batch, environmentClass string,
) (runner.Summary, error) {
	config, err := cfg.YAML()
	if err != nil {
		return runner.Summary{}, err
	}
	if b.Header, err = headerOf(cfg, environmentClass); err != nil {
		return runner.Summary{}, err
	}
	changed, err := b.Folder.Begin(runner.Manifest{
		MiniVersion: Version,
		Dataset:     w.dataset,
		Model:       runner.Named{Class: cfg.Model.Class, Name: modelName(cfg)},
		Environment: runner.Named{Class: environmentClass, Name: cfg.Environment.Image},
	}, config)
	if err != nil {
		return runner.Summary{}, err
	}
	if err := announce(s.Err, cfg, w.dataset.Name, len(w.rows), environmentClass, b.Folder.Dir()); err != nil {
		return runner.Summary{}, err
	}
	if changed {
		b.Log.Emit(runner.Event{Type: runner.Warning, Text: "an earlier session in this folder had another configuration; its results stay"})
	}
	return b.Run(ctx, w.rows)
}

// announce says in two lines what is about to happen.
func announce(w io.Writer, cfg *configs.Resolved, set string, n int, class, dir string) error {
	_, err := fmt.Fprintf(w, "mini bench: %s, %d instance(s), %d worker(s), %s sandboxes, model %s\nfiles go to %s\n",
		report.Printable(set), n, cfg.Run.Workers, class, report.Printable(modelName(cfg)), report.Printable(dir))
	if err == nil && cfg.Model.Class == "scripted" {
		_, err = fmt.Fprintln(w, "the replies are scripted: they come from a file, and no model is called; everything else is real")
	}
	return err
}

// conclude writes the summary and picks how the command ends.
func (o *benchOptions) conclude(ctx context.Context, s Streams, sum runner.Summary, folder *runner.Folder, failed error) error {
	if failed != nil && sum.Instances == 0 {
		return nil // it never came to a run
	}
	err := folder.End(sum)
	if o.json {
		err = errors.Join(err, json.NewEncoder(s.Out).Encode(map[string]any{"run": folder.Dir(), "summary": sum}))
	} else {
		err = errors.Join(err, report.Summary(s.Out, sum, folder.Dir()))
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
	name := strings.TrimLeft(unfit.ReplaceAllString(filepath.Base(o.subset), "-"), ".-")
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

func ids(rows []datasets.Instance) []string {
	names := make([]string, len(rows))
	for i, in := range rows {
		names[i] = in.ID
	}
	return names
}
