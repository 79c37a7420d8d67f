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
		Long:  `Lets the agent work on the rows of a dataset. With the same -o it goes on.`,
		Example: `  mini bench --subset demo
  mini bench --subset verified --slice 0:20 -w 8 -m gpt-5-mini -o runs/first`,
		Annotations: map[string]string{groupsKey: "rows: subset+split instance filter+slice shuffle+seed; " +
			"model: model+local model-class+replies profile cost-limit+no-autosubmit total-cost-limit+total-calls; sandbox: environment-class+empty-folder workers+network keep+image-budget; " +
			"run: output+redo-existing attempts+resume-attempts+force eval+eval-workers config+dry-run max-consecutive-provider-failures; " +
			"output: progress+json+events"},
		Aliases: []string{"swebench"},
		Args:    benchArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runBench(cmd.Context(), kill, s, o) },
	}
	o.flags(cmd.Flags())
	for name, usage := range jointUsages {
		cmd.Flags().Lookup(name).Usage = usage
	}
	return cmd
}

// jointUsages are the texts of the lines on which the help of mini bench has two
// flags. Other commands have the flags alone.
var jointUsages = map[string]string{
	"config":            "YAML `FILE` or key.sub=value; plan only",
	"environment-class": "`NAME`; no repository",
	"cost-limit":        "`USD` each (3); no diff at a limit",
	"workers":           "`N` at once (1); NAME: none, bridge ...",
	"filter":            "ids that begin with `RE`; then rows S",
	"output":            "`FOLDER`; all again, keeping all",
	"attempts":          "`N` each (1); go on inside",
}

// flags are those of mini bench; mini doctor takes them too.
func (o *benchOptions) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	o.subsetFlags.flags(f)
	o.configFlags.flags(f)
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` of the run")
	f.IntP("workers", "w", 1, "`N` instances at once (default 1)")
	f.IntP("attempts", "k", 1, "`N` results for each instance (default 1)")
	f.Lookup("model").Usage = "`NAME`; SERVER: ollama, vllm, URL"
	f.Lookup("local").Usage = "`SERVER` here"
	f.Lookup("model-class").Usage = "`NAME`: openai, anthropic, scripted"
	f.String("replies", "", "`R`: file of replies for a scripted model; \"wrong\": the demo's")
	f.BoolVar(&o.emptyFolder, "empty-folder", false, "begin in an empty folder where a row's repository is not here")
	f.String("network", "", "`NAME`: none (default), bridge ...")
	f.String("keep", "", "`W` stay: none, failed, all; S as 80GB")
	f.String("image-budget", "", "`S` of room for pulled images, as 80GB")
	f.Float64("total-cost-limit", 0, "`USD` and N of the whole run")
	f.Int("total-calls", 0, "`N` calls of the model in the whole run")
	f.Int("max-consecutive-provider-failures", 5, "`N` in a row end it (5)")
	o.selectionFlags(f)
	f.Bool("resume-attempts", false, "go on inside attempts that were stopped")
	f.BoolVar(&o.force, "force", false, "with --resume-attempts: also past commands that diverge")
	f.Bool("eval", false, "judge submissions, N patches at once")
	f.Int("eval-workers", 0, "`N` patches at once (default half the cores)")
	f.BoolVar(&o.redo, "redo-existing", false, "all again, keeping all; or only plan")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would run, and run nothing")
	f.StringVar(&o.progress, "progress", "", "`HOW`: live, plain, json, none")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on stdout")
	eventsFlag(f, &o.events)
}

// selectionFlags pick rows of the subsets; mini images takes them too.
func (o *benchOptions) selectionFlags(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.selection.IDs, "instance", "i", nil, "only this `ID`; repeatable")
	f.StringVar(&o.selection.Filter, "filter", "", "only ids that begin with `RE`")
	f.StringVar(&o.selection.Slice, "slice", "", "rows `S`, as in Python: A:B:STEP")
	f.BoolVar(&o.selection.Shuffle, "shuffle", false, "mix first, alike for a seed")
	f.Uint64Var(&o.selection.Seed, "seed", 42, "`N` for --shuffle")
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
