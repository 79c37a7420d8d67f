// Package replay implements mini replay, which runs the commands of recorded
// attempts again, or continues an attempt from one of its steps.
package replay

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/usage"
)

// Options are the flags of mini replay.
type Options struct {
	settings.Flags
	datasets    rows.DatasetFlags
	instances   []string
	attempt     int
	stopAtFirst bool
	yes         bool
	output      string
	json        bool
	// step and force are flags of branches, which continue a recording.
	step  int
	force bool
}

// New returns the command mini replay.
func New(a *app.App) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "replay TRAJ|RUN...",
		Short: "Run the commands of recorded attempts again and compare the results",
		Long: `Runs the commands of each recorded attempt again, in a fresh sandbox with the
recorded settings. It compares the exit code and output of each command byte for
byte, then without times, durations, temporary names, addresses and ports. At
the end it compares the diff with the recorded one. Of a run, it replays the
attempts that count. The exit code is 0 if all exit codes and diffs are the same,
even if outputs differ, and 3 otherwise.

With --from-step N, a model continues the recording after step N. The commands
up to step N run again, and the rest is a new attempt in the run of -o.`,
		Example: `  mini replay runs/first
  mini replay runs/first -i minidemo__ledger-17 --json
  mini replay theirs.traj.json -c environment.image=python:3.12
  mini replay runs/first -i ID --from-step 4 -m gpt-5-mini -o runs/branch`,
		Args: cmdutil.AtLeastOne("trajectories, or folders of runs"),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), a, o, args) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// addFlags adds the flags to f.
func (o *Options) addFlags(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.instances, "instance", "i", nil, "for runs: replay only the instance with this `ID`, or the only one whose id contains it; repeatable")
	f.IntVar(&o.attempt, "attempt", 0, "for runs: replay this attempt instead of the one that counts")
	o.datasets.AddFlags(f)
	f.Lookup("subset").Usage = "dataset `SET` of the attempts' instances; repeatable"
	f.String("environment-class", "", "sandbox: docker, bubblewrap or local (default: as recorded)")
	f.BoolVarP(&o.yes, "yes", "y", false, "allow the local environment to run the commands on this machine")
	o.AddConfigFlag(f)
	f.String("network", "", "container network: none, bridge or a network's name (default \"none\")")
	f.IntP("workers", "w", 1, "number of attempts to replay in parallel")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` for replay.json; with --from-step, folder of the new run")
	f.BoolVar(&o.json, "json", false, "print the report as JSON on stdout")
	f.BoolVar(&o.stopAtFirst, "stop-at-first", false, "stop an attempt at its first divergence")
	f.IntVar(&o.step, "from-step", 0, "continue with a model after this number of model calls")
	f.StringP("model", "m", "", "with --from-step: `NAME` of the model")
	f.String("replies", "", "with --from-step: `FILE` of replies for a scripted model")
	settings.AddLocalFlag(f)
	f.String("model-class", "", "with --from-step: client of the model: openai, anthropic or scripted")
	f.Float64P("cost-limit", "l", 0, "with --from-step: cost limit in `USD` (default: as recorded; 0: none)")
	f.BoolVar(&o.force, "force", false, "with --from-step: continue even if the history is not reproduced")
}

func run(ctx context.Context, a *app.App, o *Options, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	recordings, err := o.find(a, args)
	if err != nil {
		return err
	}
	if err := a.LoadDotenv(); err != nil {
		return err
	}
	if o.isBranch() {
		batch, err := o.prepareBranch(ctx, a, recordings)
		if err != nil {
			return usage.Wrap(err)
		}
		return batch.Run(ctx, a)
	}
	groups, err := o.prepare(ctx, a, recordings)
	if err != nil {
		return err
	}
	report, err := o.replayAll(ctx, a, groups, recordings)
	if err != nil {
		return err
	}
	if err := errors.Join(o.save(report), o.show(a, report)); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return agent.ErrInterrupted
	case report.Summary.Reproduced < report.Summary.Attempts:
		return cmdutil.WithCode(cmdutil.ErrReported, cmdutil.ExitIncomplete)
	}
	return nil
}

// isBranch reports whether a model continues the recordings.
func (o *Options) isBranch() bool { return o.FlagSet.Changed("from-step") }

// resultFile is the name of the report in the folder of -o.
const resultFile = datasets.ReplayFile

// check validates the flags.
func (o *Options) check() error {
	path := filepath.Join(o.output, resultFile)
	switch isBranch := o.isBranch(); {
	case o.attempt < 0:
		return usage.Errorf("--attempt %d: attempts count from 1", o.attempt)
	case isBranch && o.step < 1:
		return usage.Errorf("--from-step %d: steps count from 1", o.step)
	case isBranch && o.output == "":
		return usage.Errorf("--from-step requires -o, the folder of the new run")
	case isBranch && o.stopAtFirst:
		return usage.Errorf("--stop-at-first cannot be combined with --from-step")
	case isBranch:
		return nil
	case o.output != "" && cmdutil.FileExists(path):
		return usage.Errorf("%s exists; pass another folder with -o", path)
	}
	for _, name := range branchFlags {
		if o.FlagSet.Changed(name) {
			return usage.Errorf("--%s requires --from-step", name)
		}
	}
	return nil
}
