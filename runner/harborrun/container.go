package harborrun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/files"
)

// maxCommand is a time limit for commands that another limit ends, rootTimeout one for those
// that prepare a container.
const (
	maxCommand  = 30 * 24 * time.Hour
	rootTimeout = 2 * time.Minute
)

// configure returns the configuration of a container for a task. Processes run as root
// unless a command names another user.
func configure(c docker.Config, e harbor.Environment, offline bool, variables map[string]string) docker.Config {
	c.User, c.Dir = "0:0", e.Workdir
	if n := e.Memory(); n > 0 {
		c.MemoryBytes = n
	}
	if e.CPUs != nil {
		c.CPUs = *e.CPUs
	}
	if offline {
		c.Network = "none"
	}
	c.Env = maps.Clone(c.Env)
	if c.Env == nil {
		c.Env = map[string]string{}
	}
	if c.Env["BASH_ENV"] == "" {
		delete(c.Env, "BASH_ENV")
	}
	maps.Copy(c.Env, variables)
	return c
}

// asUser runs commands that name no user as a user of the container.
type asUser struct {
	env.Environment
	user string
	home string // HOME of the task's variables; "" for the user's own
}

// Unwrap returns the underlying sandbox (see env.AsFiles).
func (a asUser) Unwrap() env.Environment { return a.Environment }

// Execute implements env.Environment.
func (a asUser) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.User == "" {
		c.User = a.user
	}
	if _, ok := c.Env["HOME"]; a.home != "" && !ok {
		c.Env = maps.Clone(c.Env)
		if c.Env == nil {
			c.Env = map[string]string{}
		}
		c.Env["HOME"] = a.home
	}
	return a.Environment.Execute(ctx, c)
}

// runRoot runs a script as root. A failure is an error.
func runRoot(ctx context.Context, e env.Environment, script string) error {
	res, err := e.Execute(ctx, env.Command{Script: script, User: "0:0", Dir: "/", Timeout: rootTimeout})
	switch {
	case err != nil:
		return err
	case res.Failure != "":
		return errors.New(res.Failure)
	case res.TimedOut:
		return fmt.Errorf("%.60q takes longer than %s", script, rootTimeout)
	case res.ExitCode != 0:
		return fmt.Errorf("%.60q: exit code %d: %.300q", script, res.ExitCode, lastBytes(res.Output, 300))
	}
	return nil
}

// putFolder copies a folder of this machine into a folder of a container, where it has its
// own name. Links that leave the folder are an error.
func putFolder(ctx context.Context, e env.Environment, dir, folder string) error {
	into, ok := env.AsFiles(e)
	if !ok {
		return errors.New("the sandbox takes no files")
	}
	return pipe(func(w io.Writer) error { return files.Pack(w, folder) }, func(r io.Reader) error { return into.Put(ctx, dir, r) })
}

// pipe passes what write writes to read, and returns the error of read, or else of write.
func pipe(write func(io.Writer) error, read func(io.Reader) error) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() { // ends when r is closed
		err := write(w)
		w.CloseWithError(err)
		written <- err
	}()
	err := read(r)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	r.CloseWithError(io.ErrClosedPipe)
	if writeErr := <-written; writeErr != nil && !errors.Is(writeErr, io.ErrClosedPipe) {
		return writeErr // the cause of the other
	}
	return err
}

// killAll ends every process of a container but the helper.
func killAll(ctx context.Context, e env.Environment) error {
	res, err := e.Execute(ctx, env.Command{Interpreter: []string{env.KillProgram}, Dir: "/"})
	switch {
	case err != nil:
		return err
	case res.Failure != "":
		return errors.New(res.Failure)
	case res.Survivors > 0:
		return fmt.Errorf("%d processes cannot be killed", res.Survivors)
	}
	return nil
}

// endPhase ends the processes of a phase, unless they may stay, and gives the container the
// network of the next one. No process but the helper sees two networks.
func (a *attempt) endPhase(ctx context.Context, e env.Environment, next harbor.Phase, mayStay bool) error {
	network := a.network(next)
	if mayStay && network == a.current {
		return nil
	}
	if err := killAll(ctx, e); err != nil {
		return err
	}
	if network != a.current {
		if err := changeNetwork(ctx, e, network); err != nil {
			return err
		}
		a.current = network
	}
	// The tests or the next step may need the services of the image.
	return startEntrypoint(ctx, a.as(e, ""), a.image.Entrypoint)
}

// tryNetworks changes the network of a container as the phases of the task will, before
// anything runs in it: an engine that cannot do it must not cost the agent's work.
func (a *attempt) tryNetworks(ctx context.Context, e env.Environment) error {
	if !a.task.ChangesNetwork() {
		return nil
	}
	for _, network := range []string{cmp.Or(a.Base.Network, "none"), "none", a.current} {
		if err := changeNetwork(ctx, e, network); err != nil {
			return err
		}
	}
	return nil
}

func changeNetwork(ctx context.Context, e env.Environment, network string) error {
	c, ok := env.As[env.NetworkChanger](e)
	if !ok {
		return setupError(ctx, "change the network", errors.New("the network of this sandbox cannot be changed"))
	}
	return c.ChangeNetwork(ctx, network)
}

// network returns the network of a phase in the container of the agent.
func (a *attempt) network(p harbor.Phase) string {
	if a.task.Environment.IsOffline(p) || a.Base.Network == "" {
		return "none"
	}
	return a.Base.Network
}

// startEntrypoint starts the program of an image in the background, as an engine does.
func startEntrypoint(ctx context.Context, e env.Environment, program []string) error {
	if len(program) == 0 {
		return nil
	}
	command := ""
	for _, arg := range append(slices.Clone(program), "sh", "-c", "sleep infinity") {
		command += "'" + strings.ReplaceAll(arg, "'", `'\''`) + "' "
	}
	_, err := e.Execute(ctx, env.Command{Script: command + "</dev/null >/dev/null 2>&1 &", Timeout: rootTimeout})
	return err
}

// prepare makes the folders of logs, starts the program of the image, and waits until the
// container is healthy.
func (a *attempt) prepare(ctx context.Context, e env.Environment, image docker.Image, h *harbor.Healthcheck) error {
	err := runRoot(ctx, e, "mkdir -p /logs/agent "+verifierDir+" "+artifactsDir+" && chmod 777 /logs/agent "+verifierDir+" "+artifactsDir)
	if err != nil {
		return setupError(ctx, "prepare the container", err)
	}
	if err := startEntrypoint(ctx, e, image.Entrypoint); err != nil {
		return setupError(ctx, "start the program of the image", err)
	}
	return waitHealthy(ctx, e, h)
}

// waitHealthy runs a health check until it succeeds.
func waitHealthy(ctx context.Context, e env.Environment, h *harbor.Healthcheck) error {
	if h == nil {
		return nil
	}
	interval, retries := orDefault(h.Interval, 5), 3
	if h.Retries != nil {
		retries = max(1, *h.Retries)
	}
	began, failures := time.Now(), 0
	for {
		res, err := e.Execute(ctx, env.Command{Script: h.Command, Timeout: orDefault(h.Timeout, 30)})
		if err != nil {
			return setupError(ctx, "check the health of the container", err)
		}
		if res.ExitCode == 0 && res.Failure == "" {
			return nil
		}
		wait := interval
		if starting := time.Since(began) < seconds(h.StartPeriod, 0); starting {
			wait = orDefault(h.StartInterval, 5)
		} else if failures++; failures >= retries {
			return setupError(ctx, "check the health of the container", fmt.Errorf("HealthcheckError: %d failures, the last with exit code %d: %.200q", failures, res.ExitCode, lastBytes(res.Output, 200)))
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

func orDefault(n *float64, byDefault float64) time.Duration {
	if n != nil {
		byDefault = *n
	}
	return max(time.Millisecond, time.Duration(byDefault*float64(time.Second)))
}

// setupError returns the error of a preparation: an env.Error, or the cause of the end of ctx.
func setupError(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*env.Error](err); ok {
		return err
	}
	return &env.Error{Status: env.SetupFailed, Op: op, Err: err}
}

// prepareStep copies the files of a step into the working directory and runs its setup.sh.
func (a *attempt) prepareStep(ctx context.Context, e env.Environment, s harbor.Step) error {
	if s.Dir == "" {
		return nil
	}
	if err := a.endPhase(ctx, e, s.Agent, true); err != nil {
		return setupError(ctx, "prepare step "+s.Name, err)
	}
	var tree bytes.Buffer
	workdir := filepath.Join(a.task.Dir, filepath.FromSlash(s.Dir), "workdir")
	if err := files.Pack(&tree, workdir); err == nil {
		into, ok := env.AsFiles(e)
		if !ok {
			return errors.New("the sandbox takes no files")
		}
		if err := into.Put(ctx, "/tmp/mini-step", &tree); err != nil {
			return setupError(ctx, "prepare step "+s.Name, err)
		}
		dir := strings.ReplaceAll(e.Info().Dir, "'", `'\''`)
		err := runRoot(ctx, e, "chmod -R a+rwX /tmp/mini-step && (umask 0; cp -r /tmp/mini-step/workdir/. '"+dir+"') && rm -rf /tmp/mini-step && cd '"+dir+"' && if [ -f setup.sh ]; then bash ./setup.sh && rm -f setup.sh; fi")
		if err != nil {
			return setupError(ctx, "prepare step "+s.Name, err)
		}
	}
	return waitHealthy(ctx, e, s.Healthcheck)
}
