// Package host makes programs on this machine available as tools. Each call
// runs the program once, outside the sandbox.
//
// The program receives the call as a JSON object on standard input, with the
// keys name, args, input, dir and instance. Its standard output is the
// response. The end of its standard error is recorded; the model sees the last
// part of that only if the program fails. At the timeout the program is killed
// with all processes that it started.
//
//	t, err := host.New(host.Config{Name: "issues", Command: []string{"issues.py"}, Env: environ})
//
// Configured secrets are removed from all output. The program is trusted: it
// runs with the user's rights.
package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/procgroup"
	"github.com/minibench/mini/trajectories"
)

// Config configures a Tool. Name and Command are required.
type Config struct {
	Name string
	// Command is the program and its arguments. No shell is involved.
	Command []string
	// Usage and Description are those of tools.Spec. If Usage does not begin
	// with Name, Name is prepended.
	Usage, Description string
	// Env is the program's entire environment. Of API keys, it should contain
	// only those that the user names.
	Env []string
	// Secrets are values to remove from the program's output.
	Secrets []string
	// Dir is the working directory; empty means the current one.
	Dir string
	// Instance is the instance ID that the program receives; may be empty.
	Instance string
	// Timeout and MaxOutput are those of tools.Spec.
	Timeout   time.Duration
	MaxOutput int
	// Check validates the arguments before the program runs; may be nil.
	Check func(c tools.Call) error
}

// Tool implements tools.Tool by running a program.
type Tool struct {
	config  Config
	path    string
	secrets []string
}

// Bounds of the standard error, in bytes.
const (
	maxStderr      = 8 << 10 // recorded
	maxShownStderr = 2 << 10 // shown to the model
)

// waitDelay bounds how long the output may stay open after the program exits.
const waitDelay = time.Second

// ErrNoProgram is wrapped by errors about a program that cannot be run.
var ErrNoProgram = errors.New("program not found or not executable")

// New returns a tool, or an error if the program does not exist.
func New(c Config) (*Tool, error) {
	if err := tools.CheckName(c.Name); err != nil {
		return nil, err
	}
	if len(c.Command) == 0 || c.Command[0] == "" {
		return nil, fmt.Errorf("tool %s: %w: the command is empty", c.Name, ErrNoProgram)
	}
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w: %.80q", c.Name, ErrNoProgram, c.Command[0])
	}
	return &Tool{c, path, secretForms(c.Secrets)}, nil
}

// Spec implements tools.Tool.
func (t *Tool) Spec() tools.Spec {
	usage := cmp.Or(t.config.Usage, t.config.Name+" ARGS...")
	if first, _, _ := strings.Cut(strings.TrimSpace(usage), " "); first != t.config.Name {
		usage = t.config.Name + " " + usage
	}
	return tools.Spec{Name: t.config.Name, Usage: usage, Description: t.config.Description, Timeout: t.config.Timeout, MaxOutput: t.config.MaxOutput}
}

// request is the JSON document that a program receives.
type request struct {
	Name     string             `json:"name"`
	Args     []string           `json:"args"`
	Input    trajectories.Bytes `json:"input,omitempty"`
	Dir      string             `json:"dir"`
	Instance string             `json:"instance,omitempty"`
}

// Details are recorded with a call.
type Details struct {
	ExitCode int    `json:"exit_code"`
	Stderr   string `json:"stderr,omitempty"`
	// Bytes is the full length of the output.
	Bytes int64 `json:"bytes"`
}

// Call implements tools.Tool.
func (t *Tool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	if t.config.Check != nil {
		if err := t.config.Check(c); err != nil {
			return tools.Result{}, err
		}
	}
	requestJSON, err := json.Marshal(request{t.config.Name, append([]string{}, c.Args...), c.Input, c.Dir, t.config.Instance})
	if err != nil {
		return tools.Result{}, fmt.Errorf("encode call: %w", err)
	}
	cmd := exec.CommandContext(ctx, t.path, t.config.Command[1:]...) //nolint:gosec // the user's own program
	cmd.Dir, cmd.Stdin = t.config.Dir, bytes.NewReader(append(requestJSON, '\n'))
	stdout, stderr := &procgroup.HeadBuffer{Limit: env.MaxToolResponse}, &procgroup.TailBuffer{Limit: maxStderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = waitDelay
	group := procgroup.New(cmd, t.config.Env)
	cmd.Cancel = group.Kill
	err = group.Run()
	res := tools.Result{Output: t.redactedOutput(stdout), Details: Details{cmd.ProcessState.ExitCode(), t.redactedStderr(stderr), stdout.Size}}
	if int64(len(stdout.Data)) < stdout.Size {
		res.Size = stdout.Size
	}
	exit, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return res, context.Cause(ctx)
	case isExit:
		return res, exitError(exit, t.redactedStderr(stderr))
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return tools.Result{}, fmt.Errorf("run it: %w", err)
	}
	return res, nil
}

// exitError returns the error for a failed program, with the end of its
// standard error.
func exitError(exit *exec.ExitError, stderr string) error {
	text := strings.TrimSpace(strings.ToValidUTF8(stderr[max(0, len(stderr)-maxShownStderr):], "\uFFFD"))
	if text == "" {
		return fmt.Errorf("the program ended with %s", exit.ProcessState)
	}
	return fmt.Errorf("the program ended with %s:\n%s", exit.ProcessState, text)
}
