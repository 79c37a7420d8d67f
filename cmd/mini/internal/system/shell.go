package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/docker"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/runs"
)

// ShellOptions are the flags of mini shell.
type ShellOptions struct {
	settings.Flags
	datasets rows.DatasetFlags
	run      string
	attempt  int
}

// NewShell returns the command mini shell.
func NewShell(a *app.App) *cobra.Command {
	o := &ShellOptions{}
	cmd := &cobra.Command{
		Use:   "shell [INSTANCE] [-- COMMAND...]",
		Short: "Open a shell in the sandbox of an instance",
		Long: `Opens a shell in a sandbox like the one the agent gets for an instance: the
same image, limits and network. With --run, it opens a sandbox that a run kept
(see mini bench --keep), as the agent left it. When the shell exits, mini removes
the sandbox and all changes in it.

With COMMAND, mini runs the command instead of a shell and exits with its code.`,
		Example: `  mini shell --subset verified astropy__astropy-12907
  mini shell --run runs/first astropy__astropy-12907
  mini shell --subset demo minidemo__ledger-17 -- python3 -m pytest -q
  mini shell -c environment.image=python:3.12 --network bridge`,
		RunE: func(cmd *cobra.Command, args []string) error {
			instance, command, err := splitAtDash(cmd, args)
			if err != nil {
				return err
			}
			return runShell(cmd.Context(), a, o, instance, command)
		},
	}
	f := cmd.Flags()
	o.datasets.AddFlags(f)
	f.StringVar(&o.run, "run", "", "`FOLDER` of a run that kept the sandbox")
	f.IntVar(&o.attempt, "attempt", 0, "number `N` of a kept attempt (default: the newest)")
	f.String("network", "", "container network: none, bridge or a network's name (default \"none\")")
	o.AddConfigFlag(f)
	return cmd
}

// splitAtDash separates the instance from the command after --.
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

// runShell runs mini shell.
func runShell(ctx context.Context, a *app.App, o *ShellOptions, instance string, command []string) error {
	cfg, err := o.resolveSandbox(ctx, a, instance)
	if err != nil {
		return usage.Wrap(err)
	}
	if o.run != "" {
		if cfg.Environment.Image, err = keptImage(ctx, o.run, instance, o.attempt); err != nil {
			return usage.Wrap(err)
		}
	}
	sandboxes, err := a.Sandboxes(ctx, cfg, envopen.Options{Run: o.run})
	if err != nil {
		return err
	}
	code, err := openShell(ctx, a, cfg, sandboxes, datasets.Instance{ID: instance}, command)
	if err = errors.Join(err, sandboxes.Close()); err != nil {
		return err
	}
	if code != cmdutil.ExitOK {
		return cmdutil.WithCode(cmdutil.ErrReported, code)
	}
	return nil
}

// resolveSandbox returns the configuration of the sandbox. With --run, it is based on
// the configuration of the run; otherwise on that of mini bench, with the image of the
// instance. Flags and -c override both.
func (o *ShellOptions) resolveSandbox(ctx context.Context, a *app.App, instance string) (*configs.Resolved, error) {
	if o.run != "" {
		if len(o.datasets.Subsets) > 0 {
			return nil, usage.Errorf("--run and --subset cannot be combined")
		}
		if instance == "" {
			return nil, usage.Errorf("name an instance of %s", o.run)
		}
		if _, err := runs.Open(o.run); err != nil {
			return nil, cmdutil.RunFolderError(o.run, err)
		}
		o.Config = append([]string{filepath.Join(o.run, "config.yaml")}, o.Config...)
	}
	cfg, err := a.ConfigWithoutModel(ctx, &o.Flags, "swebench")
	if err != nil {
		return nil, err
	}
	if cfg.Environment.Class != "docker" {
		return nil, usage.Errorf("mini shell opens containers only, but the environment class is %s; pass --config environment.environment_class=docker", cfg.Environment.Class)
	}
	image := &cfg.Environment.Image
	switch {
	case o.run != "":
	case len(o.datasets.Subsets) > 0 && instance != "":
		set, err := o.datasets.Load(ctx, a.Streams, datasets.Selection{IDs: []string{instance}}.Apply)
		if err == nil && len(set.Instances) == 0 {
			err = usage.Errorf("no row has the id %s", instance)
		}
		if err != nil {
			return cfg, err
		}
		*image = envopen.ImageName(cfg, set.Instances[0])
	case len(o.datasets.Subsets) > 0:
		err = usage.Errorf("name an instance of %s; mini bench --subset %[1]s --dry-run --json lists them", o.datasets.Subsets[0])
	case *image == "" && instance != "":
		err = usage.Errorf("name the dataset of %s with --subset, or pass --run FOLDER for a sandbox that a run kept", text.Printable(instance))
	case *image == "":
		err = usage.Errorf("no sandbox is named; run mini shell --subset SET INSTANCE, or pass -c environment.image=NAME")
	}
	return cfg, err
}

// keptImage returns the image of a sandbox that a run kept for an instance: that of
// the given attempt, or of the newest one if attempt is 0.
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

// openShell starts a sandbox, runs command or a shell in it, and removes the
// sandbox. It returns the exit code.
func openShell(
	ctx context.Context, a *app.App, cfg *configs.Resolved, sandboxes *envopen.Sandboxes, in datasets.Instance, command []string,
) (int, error) {
	sandbox, err := sandboxes.Start(ctx, in)
	if err != nil {
		return 0, usage.Wrap(err)
	}
	closeSandbox := func() error { return sandbox.Close(context.WithoutCancel(ctx)) }
	container := sandbox.(*envopen.Tracked).Environment.(*docker.Container) //nolint:errcheck // the class is docker
	shell := docker.ShellOptions{
		Command: command, Env: shellVariables(envopen.SandboxVariables(cfg.Environment)),
		Stdin: a.In, Stdout: a.Out, Stderr: a.Err, TTY: a.Interactive && a.OutIsTerminal,
	}
	info := container.Info()
	if shell.TTY {
		text := fmt.Sprintf("mini: a sandbox of %s, network %s; mini removes it and all changes when this shell exits", info.Image, cmp.Or(cfg.Environment.Network, "none"))
		for _, line := range table.Wrap(text, ui.Width(a.Out)) {
			_, _ = fmt.Fprintln(a.Err, line) // best effort
		}
	}
	for _, w := range info.Warnings {
		_, _ = fmt.Fprintln(a.Err, "mini: warning:", text.Printable(w)) // best effort
	}
	code, err := withTerminal(a.In, &shell, func() (int, error) { return container.Shell(ctx, shell) })
	if errors.Is(err, syscall.EPIPE) { // the reader of the output has exited
		code, err = 128+int(syscall.SIGPIPE), nil
	}
	return code, errors.Join(err, closeSandbox())
}

// shellVariables returns the variables of the agent's commands for a shell that a
// user types into: without the pagers that disable paging, and with the type of the
// user's terminal.
func shellVariables(vars map[string]string) map[string]string {
	for _, name := range []string{"PAGER", "GIT_PAGER", "MANPAGER"} {
		delete(vars, name)
	}
	for _, name := range []string{"TERM", "COLORTERM"} {
		if value := os.Getenv(name); value != "" {
			vars[name] = value
		}
	}
	return vars
}

// withTerminal calls run while the terminal is in raw mode, so that the program in
// the sandbox receives each key. It sets shell.Resize for the size of the terminal.
// If shell.TTY is not set or in is not a file, it clears shell.TTY and only calls run.
func withTerminal(in io.Reader, shell *docker.ShellOptions, run func() (int, error)) (int, error) {
	f, ok := in.(*os.File)
	if !shell.TTY || !ok {
		shell.TTY = false
		return run()
	}
	oldState, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return 0, fmt.Errorf("prepare the terminal: %w", err)
	}
	defer term.Restore(int(f.Fd()), oldState) //nolint:errcheck // best effort
	sizes, stop := terminalSizes(f)
	defer stop()
	shell.Resize = sizes
	return run()
}

// terminalSizes returns a channel that receives the size of a terminal at the start
// and after each change. stop ends the updates.
func terminalSizes(f *os.File) (_ <-chan docker.Size, stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	sizes, stopped, done := make(chan docker.Size), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			width, height, err := term.GetSize(int(f.Fd()))
			if err == nil && width > 0 && height > 0 {
				select {
				case sizes <- docker.Size{Width: uint(width), Height: uint(height)}:
				case <-stopped:
					return
				}
			}
			select {
			case <-changed:
			case <-stopped:
				return
			}
		}
	}()
	return sizes, func() {
		signal.Stop(changed)
		close(stopped)
		<-done
	}
}
