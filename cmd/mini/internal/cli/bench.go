package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/report"
)

// benchOptions are the flags of mini bench.
type benchOptions struct {
	configFlags
	subsetFlags
	selection datasets.Selection
	output    string
	redo      bool
	force     bool
	dryRun    bool
	progress  string
	json      bool
	events    string
	// emptyFolder lets rows begin without their repository.
	emptyFolder bool
}

func newBench(kill context.Context, s Streams) *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench --subset SET",
		Short: "Let the agent work on a dataset, each row in a container",
		Long: `Lets the agent work on the rows of a dataset, each in a sandbox of its own. With
the -o of an earlier run it goes on with that.`,
		Example: `  mini bench --subset demo
  mini bench --subset verified --slice 0:20 -w 8 -m gpt-5-mini -o runs/first`,
		Aliases: []string{"swebench"},
		Args:    benchArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runBench(cmd.Context(), kill, s, o) },
	}
	o.flags(cmd.Flags())
	return cmd
}

// flags are those of mini bench; mini doctor takes them too.
func (o *benchOptions) flags(f *pflag.FlagSet) {
	o.subsetFlags.flags(f)
	o.configFlags.flags(f)
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` of the run (default: a new one below mini-runs/)")
	f.IntP("workers", "w", 1, "number of instances to run in parallel")
	f.IntP("attempts", "k", 1, "number of attempts for each instance")
	f.String("replies", "", "`FILE` of replies for a scripted model; \"wrong\" stands for the demo's wrong ones")
	f.BoolVar(&o.emptyFolder, "empty-folder", false, "begin in an empty folder where a row's repository is not here")
	f.String("network", "", "container network: none, bridge or a network's name (default \"none\")")
	f.String("keep", "", "sandboxes to keep at the end: none, failed or all")
	f.String("image-budget", "", "disk space for pulled images, as 80GB")
	f.Float64("total-cost-limit", 0, "cost limit of the whole run in `USD` (0: none)")
	f.Int("total-calls", 0, "limit of model calls in the whole run (0: none)")
	f.Int("max-consecutive-provider-failures", 5, "end the run after this many provider failures in a row (0: never)")
	o.selectionFlags(f)
	f.Bool("resume-attempts", false, "go on inside attempts that were stopped")
	f.BoolVar(&o.force, "force", false, "with --resume-attempts: also past commands that diverge")
	f.Bool("eval", false, "evaluate the patches while the run goes on")
	f.Int("eval-workers", 0, "number of patches to evaluate in parallel (default half the cores)")
	f.BoolVar(&o.redo, "redo-existing", false, "run instances that have results again; earlier results stay")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would run, and run nothing")
	f.StringVar(&o.progress, "progress", "", "how to show progress: live, plain, json or none")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on stdout")
	eventsFlag(f, &o.events)
}

// selectionFlags pick rows of the subsets; mini images takes them too.
func (o *benchOptions) selectionFlags(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.selection.IDs, "instance", "i", nil, "run only the instance with this `ID`; repeatable")
	f.StringVar(&o.selection.Filter, "filter", "", "run only instances whose id begins with this `REGEXP`")
	f.StringVar(&o.selection.Slice, "slice", "", "run only these rows, as in Python: A:B or A:B:STEP")
	f.BoolVar(&o.selection.Shuffle, "shuffle", false, "shuffle the rows before --slice")
	f.Uint64Var(&o.selection.Seed, "seed", 42, "seed of --shuffle")
}

// benchArgs knows what somebody meant who left out --subset.
func benchArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && !cmd.Flags().Changed("subset") {
		return usagef("mini bench takes flags only; did you mean --subset %s?", args[0])
	}
	return noArgs(cmd, args)
}

// runBench is `mini bench`, from flags to files.
func runBench(ctx, kill context.Context, s Streams, o *benchOptions) error {
	j, err := o.prepare(ctx, s)
	if err != nil {
		return before(err)
	}
	if o.dryRun {
		return before(j.explain(ctx, s))
	}
	return j.run(ctx, kill, s)
}

// isDemo says that the demo is all that is asked for.
func (o *benchOptions) isDemo() bool { return slices.Equal(o.subsets, []string{demoSubset}) }

// shipped are the configurations that come with mini and are the lowest layers.
func (o *benchOptions) shipped() []string {
	if o.isDemo() {
		return []string{"swebench", "demo"}
	}
	return []string{"swebench"}
}

// sayScripted tells who names a model for the demo that it is not asked.
func (o *benchOptions) sayScripted(w io.Writer, cfg *configs.Resolved) error {
	if !o.isDemo() || !o.set.Changed("model") || o.set.Changed("model-class") || o.set.Changed("replies") || cfg.Model.Class != "scripted" {
		return nil
	}
	_, err := fmt.Fprintf(w, "mini: note: the replies of the demo are scripted, and -m %s only names them; --model-class openai (or anthropic) asks that model\n",
		report.Printable(cfg.Model.Name))
	return err
}

// prepare finds every mistake that can be found before a model is called or a
// sandbox started. It writes nothing but the cache of datasets.
func (o *benchOptions) prepare(ctx context.Context, s Streams) (*job, error) {
	if len(o.subsets) == 0 {
		return nil, usagef("--subset is needed: demo, verified, lite ..., or a file of rows; mini datasets list says more")
	}
	cfg, err := o.resolve(ctx, o.shipped()...)
	if err != nil {
		return nil, err
	}
	if o.set.Changed("replies") && cfg.Model.Class != "scripted" {
		return nil, usagef("--replies is for the scripted model, and this is %s; add --model-class scripted", cfg.Model.Class)
	}
	if o.set.Changed("eval-workers") && !cfg.Run.Eval {
		return nil, usagef("--eval-workers is for --eval, which is not given")
	}
	if o.force && !cfg.Run.ResumeAttempts {
		return nil, usagef("--force is for --resume-attempts, which is not given")
	}
	kind, err := chooseProgress(o.progress, displayOf(s))
	if err != nil && !o.dryRun {
		return nil, err
	}
	if _, err := containerConfig(cfg, ""); err != nil {
		return nil, err
	}
	if err := sayNotes(s.Err); err != nil {
		return nil, err
	}
	if err := errors.Join(o.sayScripted(s.Err, cfg), o.sayLocal(s.Err)); err != nil {
		return nil, err
	}
	if _, err := newSupervisors(cfg, cfg.Environment.Class); err != nil {
		return nil, err
	}
	w, err := o.load(ctx, s)
	if err != nil {
		return nil, err
	}
	a, err := checkAgent(cfg, w.rows)
	if err != nil {
		return nil, err
	}
	j := &job{benchOptions: o, cfg: cfg, work: w, agent: a, dir: o.folder(), display: kind}
	if j.earlier, err = earlier(j.dir); err != nil {
		return nil, err
	}
	j.sayUngradable(s.Err)
	j.models, err = newModels(cfg, o.isDemo(), w.rows)
	if err == nil {
		err = costBounds(s.Err, cfg)
	}
	if err == nil {
		err = j.suits()
	}
	if err == nil {
		err = j.hasRepositories()
	}
	if o.dryRun { // which shows the plan all the same
		j.obstacle, err = err, nil
	}
	return j, err
}
