package cli

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
)

// replayOptions are the flags of mini replay.
type replayOptions struct {
	configFlags
	subsetFlags
	instances   []string
	attempt     int
	stopAtFirst bool
	yes         bool
	output      string
	json        bool
	// Of a branch.
	step  int
	force bool
}

func newReplay(kill context.Context, s Streams) *cobra.Command {
	o := &replayOptions{}
	cmd := &cobra.Command{
		Use:   "replay TRAJ|RUN...",
		Short: "Run the commands of an attempt again, and compare what they do",
		Long: `Runs the commands of recorded attempts again, each attempt in a fresh sandbox
like its own, and compares what every command does: byte for byte, then but for
times, durations, temporary names, addresses and ports. At the end the diff is
held against the recorded one. Of a run, the attempts that count are taken.
The exit code is 0 where every command ended as it did and left the same files,
also with another output, which is listed, and 3 where one did not.

With --from-step a model goes on from a point of a recording: its history up to
there is run again, and what follows is a new attempt in the run of -o.`,
		Example: `  mini replay runs/first
  mini replay runs/first -i minidemo__ledger-17 --json
  mini replay theirs.traj.json -c environment.image=python:3.12
  mini replay runs/first -i ID --from-step 4 -m gpt-5-mini -o runs/branch`,
		Args: atLeastOne("trajectories, or folders of runs"),
		RunE: func(cmd *cobra.Command, args []string) error { return runReplay(cmd.Context(), kill, s, o, args) },
	}
	o.flags(cmd.Flags())
	return cmd
}

func (o *replayOptions) flags(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.instances, "instance", "i", nil, "of runs, replay only the instance with this `ID`; repeatable")
	f.IntVar(&o.attempt, "attempt", 0, "of runs, replay this attempt instead of the one that counts")
	o.subsetFlags.flags(f)
	f.Lookup("subset").Usage = "`SET` with the rows: images, repositories"
	f.String("environment-class", "", "sandbox: docker, bubblewrap or local (default: as recorded)")
	f.BoolVarP(&o.yes, "yes", "y", false, "trust the commands: local runs them on this machine itself")
	o.configFlag(f)
	f.String("network", "", "container network: none, bridge or a network's name (default \"none\")")
	f.IntP("workers", "w", 1, "number of attempts to replay in parallel")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` for replay.json, or the run of branches")
	f.BoolVar(&o.json, "json", false, "print the findings as JSON on stdout")
	f.BoolVar(&o.stopAtFirst, "stop-at-first", false, "leave an attempt at its first divergence")
	f.IntVar(&o.step, "from-step", 0, "let a model go on after this number of model calls")
	f.StringP("model", "m", "", "`NAME` of the model that goes on")
	f.String("replies", "", "`FILE` of replies for a scripted model")
	localFlag(f)
	f.String("model-class", "", "client of the model: openai, anthropic or scripted")
	f.Float64P("cost-limit", "l", 0, "cost limit in `USD` of what goes on (default: as recorded; 0: none)")
	f.BoolVar(&o.force, "force", false, "go on also where the history does not happen again")
}

// runReplay is `mini replay`.
func runReplay(ctx, kill context.Context, s Streams, o *replayOptions, args []string) error {
	if err := o.fits(); err != nil {
		return err
	}
	all, err := o.find(s, args)
	if err != nil {
		return err
	}
	if o.branches() {
		return o.branch(ctx, kill, s, all)
	}
	groups, err := o.prepare(ctx, s, all)
	if err != nil {
		return err
	}
	report, err := o.replayAll(ctx, kill, s, groups, all)
	if err != nil {
		return err
	}
	if err := errors.Join(o.save(report), o.show(s, report)); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return agent.ErrInterrupted
	case report.Summary.Reproduced < report.Summary.Attempts:
		return &codedError{errSaid, exitIncomplete}
	}
	return nil
}

// branches says that a model is to go on.
func (o *replayOptions) branches() bool { return o.set.Changed("from-step") }

// replayFile is where -o has the findings.
const replayFile = datasets.ReplayFile

// fits finds what cannot be before anything is read.
func (o *replayOptions) fits() error {
	switch path := filepath.Join(o.output, replayFile); {
	case o.attempt < 0:
		return usagef("--attempt %d: attempts count from 1", o.attempt)
	case o.branches():
		return o.fitsBranch()
	case o.output != "" && exists(path):
		return usagef("%s is there already; give another folder with -o", path)
	}
	for _, name := range branchFlags {
		if o.set.Changed(name) {
			return usagef("--%s is for a model that goes on; say after which step, with --from-step N", name)
		}
	}
	return nil
}

func (o *replayOptions) fitsBranch() error {
	switch {
	case o.step < 1:
		return usagef("--from-step %d: steps count from 1", o.step)
	case o.output == "":
		return usagef("--from-step makes a new attempt; say with -o in which run's folder")
	case o.stopAtFirst:
		return usagef("--stop-at-first is for comparing; a branch stops where its history does not happen again, unless --force is given")
	}
	return nil
}
