package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/docker"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
)

// shellOptions are the flags of mini shell.
type shellOptions struct {
	settings.Flags
	rows.DatasetFlags
	run     string
	attempt int
}

// NewShell returns the command mini shell.
func NewShell(kill context.Context, s cmdutil.Streams) *cobra.Command {
	o := &shellOptions{}
	cmd := &cobra.Command{
		Use:   "shell [INSTANCE] [-- COMMAND...]",
		Short: "Open the sandbox of an instance, to look around in it",
		Long: `Opens a shell in a sandbox like the one the agent gets for an instance: the
same image, limits and network. With --run it is a sandbox that a run has kept
(see mini bench --keep), as the agent left it. The sandbox ends with the shell,
and what was changed in it is gone.

With a COMMAND that is run instead, and its exit code is mini's.`,
		Example: `  mini shell --subset verified astropy__astropy-12907
  mini shell --run runs/first astropy__astropy-12907
  mini shell --subset demo minidemo__ledger-17 -- python3 -m pytest -q
  mini shell -c environment.image=python:3.12 --network bridge`,
		RunE: func(cmd *cobra.Command, args []string) error {
			instance, command, err := splitAtDash(cmd, args)
			if err != nil {
				return err
			}
			return runShell(cmd.Context(), kill, s, o, instance, command)
		},
	}
	f := cmd.Flags()
	o.DatasetFlags.AddFlags(f)
	f.StringVar(&o.run, "run", "", "`FOLDER` of a run that has kept the sandbox")
	f.IntVar(&o.attempt, "attempt", 0, "`N`: not the newest attempt that was kept")
	f.String("network", "", "container network: none, bridge or a network's name (default \"none\")")
	o.AddConfigFlag(f)
	return cmd
}

// splitAtDash tells the instance from the command behind --.
func splitAtDash(cmd *cobra.Command, args []string) (instance string, command []string, err error) {
	names := args
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		names, command = args[:at], args[at:]
		if len(command) == 0 {
			return "", nil, usage.Errorf("there is no command after --")
		}
	}
	if len(names) > 1 {
		return "", nil, usage.Errorf("mini shell takes one instance, not %d; a command comes after --: mini shell %s -- %s ...", len(names), names[0], names[1])
	}
	if len(names) == 1 {
		instance = names[0]
	}
	return instance, command, nil
}

// runShell is `mini shell`.
func runShell(ctx, kill context.Context, s cmdutil.Streams, o *shellOptions, instance string, command []string) error {
	cfg, err := o.sandbox(ctx, s, instance)
	if err != nil {
		return usage.Wrap(err)
	}
	if o.run != "" {
		if cfg.Environment.Image, err = keptImage(ctx, o.run, instance, o.attempt); err != nil {
			return usage.Wrap(err)
		}
	}
	plain := report.NewPlainPrinter(s.Err, nil)
	boxes, err := envopen.New(ctx, kill, cfg, false, false, o.run, s.Err, progress.Observe(plain.Event))
	if err != nil {
		return err
	}
	code, err := openShell(ctx, s, cfg, boxes, datasets.Instance{ID: instance}, command)
	if err = errors.Join(err, boxes.Close()); err != nil {
		return err
	}
	if code != cmdutil.ExitOK {
		return cmdutil.WithCode(cmdutil.ErrReported, code)
	}
	return nil
}

// sandbox finds what to start: the configuration of the run, or that of mini
// bench, and the image of the instance.
func (o *shellOptions) sandbox(ctx context.Context, s cmdutil.Streams, instance string) (*configs.Resolved, error) {
	if o.run != "" {
		if len(o.Subsets) > 0 {
			return nil, usage.Errorf("--run and --subset are two ways to say which sandbox; leave one away")
		}
		if instance == "" {
			return nil, usage.Errorf("which instance of %s?", o.run)
		}
		if _, err := runner.ReadRun(o.run); err != nil {
			return nil, cmdutil.RunFolderError(o.run, err)
		}
		o.Config = append([]string{filepath.Join(o.run, "config.yaml")}, o.Config...)
	}
	cfg, err := o.Merge("swebench")
	if err != nil {
		return nil, err
	}
	if cfg.Environment.Class != "docker" {
		return nil, usage.Errorf("mini shell opens containers, and the environment class is %s; say --config environment.environment_class=docker for one", cfg.Environment.Class)
	}
	image := &cfg.Environment.Image
	switch {
	case o.run != "":
	case len(o.Subsets) > 0 && instance != "":
		*image, err = o.imageOf(ctx, s, cfg, instance)
	case len(o.Subsets) > 0:
		err = usage.Errorf("which instance of %s? mini bench --subset %[1]s --dry-run --json lists them", o.Subsets[0])
	case *image == "" && instance != "":
		err = usage.Errorf("which dataset is %s in? Say --subset SET, or --run FOLDER of a run that has kept it", text.Printable(instance))
	case *image == "":
		err = usage.Errorf("which sandbox? mini shell --subset SET INSTANCE, or -c environment.image=NAME")
	}
	return cfg, err
}

// imageOf finds the row of an instance, and its image.
func (o *shellOptions) imageOf(ctx context.Context, s cmdutil.Streams, cfg *configs.Resolved, instance string) (string, error) {
	sources, err := o.OpenAll(ctx, s)
	if err != nil {
		return "", err
	}
	set, err := datasets.Load(ctx, sources, datasets.Selection{IDs: []string{instance}})
	if err != nil {
		return "", err
	}
	if len(set.Instances) == 0 {
		return "", usage.Errorf("there is no %s", instance)
	}
	return envopen.ImageName(cfg, set.Instances[0]), nil
}

// keptImage is the sandbox that a run kept of an instance: that of the newest
// attempt, or of the one asked for.
func keptImage(ctx context.Context, run, instance string, attempt int) (string, error) {
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return "", err
	}
	kept, err := engine.KeptImages(ctx, envopen.RunLabel(run), instance)
	if err = errors.Join(err, engine.Close()); err != nil {
		return "", err
	}
	image := ""
	for _, k := range kept { // oldest first
		if attempt == 0 || k.Attempt == fmt.Sprint(attempt) {
			image = k.Image
		}
	}
	switch {
	case image != "":
		return image, nil
	case len(kept) > 0:
		return "", usage.Errorf("%s has kept %s of %s, but not attempt %d", run, text.Count(len(kept), "attempt"), instance, attempt)
	}
	return "", usage.Errorf("%s has not kept the sandbox of %s; mini bench --keep all keeps them", run, text.Printable(instance))
}

// openShell starts a sandbox, lets the user at it, and ends it.
func openShell(
	ctx context.Context, s cmdutil.Streams, cfg *configs.Resolved, boxes *envopen.Sandboxes, in datasets.Instance, command []string,
) (int, error) {
	started, err := boxes.Start(ctx, in)
	if err != nil {
		return 0, usage.Wrap(err)
	}
	end := func() error { return started.Close(context.WithoutCancel(ctx)) }
	box := started.(*envopen.Tracked).Environment.(*docker.Container) //nolint:errcheck // the class is docker
	shell := docker.ShellOptions{
		Command: command, Env: shellVariables(envopen.SandboxVariables(cfg.Environment)),
		Stdin: s.In, Stdout: s.Out, Stderr: s.Err, TTY: s.Terminal && s.OutTerminal,
	}
	info := box.Info()
	if shell.TTY {
		text := fmt.Sprintf("mini: a sandbox of %s, network %s; it ends with this shell, and nothing is kept", info.Image, cmp.Or(cfg.Environment.Network, "none"))
		for _, line := range table.Wrap(text, ui.Width(s.Out)) {
			_, _ = fmt.Fprintln(s.Err, line) // only for people
		}
	}
	for _, w := range info.Warnings {
		_, _ = fmt.Fprintln(s.Err, "mini: warning:", text.Printable(w)) // only for people
	}
	code, err := withTerminal(s.In, &shell, func() (int, error) { return box.Shell(ctx, shell) })
	if errors.Is(err, syscall.EPIPE) { // whoever read has had enough
		code, err = 128+int(syscall.SIGPIPE), nil
	}
	return code, errors.Join(err, end())
}

// shellVariables are those of commands, and what a program needs to know of the
// terminal. The file that sets up every command is for shells that nobody
// types into.
func shellVariables(vars map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range vars {
		if name != "PAGER" && name != "GIT_PAGER" && name != "MANPAGER" {
			all[name] = value
		}
	}
	for _, name := range []string{"TERM", "COLORTERM"} {
		if value := os.Getenv(name); value != "" {
			all[name] = value
		}
	}
	return all
}

// withTerminal hands the terminal's keys on as they are typed, for as long as
// the program runs.
func withTerminal(in io.Reader, shell *docker.ShellOptions, run func() (int, error)) (int, error) {
	f, ok := in.(*os.File)
	if !shell.TTY || !ok {
		shell.TTY = false
		return run()
	}
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return 0, fmt.Errorf("prepare the terminal: %w", err)
	}
	defer term.Restore(int(f.Fd()), before) //nolint:errcheck // nothing can be done about it
	sizes, stop := terminalSizes(f)
	defer stop()
	shell.Resize = sizes
	return run()
}
