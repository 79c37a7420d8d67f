// Package host makes tools of programs on this machine: one run of the program
// for each call, outside of the sandbox.
//
// The program gets the call as a JSON object on its standard input, with the keys
// name, args, input, dir and instance. What it prints is the answer; what it says
// on its standard error goes on record, and to the model only where the program
// fails, by its end. At its timeout it is killed with all that it started.
//
//	t, err := host.New(host.Config{Name: "issues", Command: []string{"issues.py"}, Env: plain})
//
// Secrets that it is given are taken out of what it says. What it may do is not
// limited: it is the user's own.
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
	"github.com/minibench/mini/agent/tools/family"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Config says what a tool is made of. Name and Command are required.
type Config struct {
	Name string
	// Command are the program and its arguments. No shell is between.
	Command []string
	// Usage and About are those of tools.Spec. A usage that does not begin with the
	// name gets it.
	Usage, About string
	// Env is all of the program's environment. Keys have no place in it, but for
	// those that the user names.
	Env []string
	// Secrets are values that are taken out of all that the program says.
	Secrets []string
	// Dir is where it runs; empty is the current folder.
	Dir string
	// Instance is passed on to the program; it may be empty.
	Instance string
	// Timeout and MaxOutput are those of tools.Spec.
	Timeout   time.Duration
	MaxOutput int
	// Check finds mistakes in the arguments before the program is run; may be nil.
	Check func(c tools.Call) error
}

// Tool is a program as a tool.
type Tool struct {
	config  Config
	path    string
	secrets []string
}

// Bounds in bytes.
const (
	maxErrors = 8 << 10 // of the standard error, on record
	maxTail   = 2 << 10 // and told
)

// lingering is how long a program that has ended may keep its output open.
const lingering = time.Second

// ErrNoProgram is wrapped by the error of a command that cannot be run.
var ErrNoProgram = errors.New("there is no such program that could be run")

// New makes a tool. A program that is not there is an error.
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
	return &Tool{c, path, forms(c.Secrets)}, nil
}

// Spec implements tools.Tool.
func (t *Tool) Spec() tools.Spec {
	usage := cmp.Or(t.config.Usage, t.config.Name+" ARGS...")
	if first, _, _ := strings.Cut(strings.TrimSpace(usage), " "); first != t.config.Name {
		usage = t.config.Name + " " + usage
	}
	return tools.Spec{Name: t.config.Name, Usage: usage, About: t.config.About, Timeout: t.config.Timeout, MaxOutput: t.config.MaxOutput}
}

// request is what a program reads.
type request struct {
	Name     string             `json:"name"`
	Args     []string           `json:"args"`
	Input    trajectories.Bytes `json:"input,omitempty"`
	Dir      string             `json:"dir"`
	Instance string             `json:"instance,omitempty"`
}

// Details are what goes on record beside the answer.
type Details struct {
	ExitCode int    `json:"exit_code"`
	Stderr   string `json:"stderr,omitempty"`
	// Bytes is how long the output was.
	Bytes int64 `json:"bytes"`
}

// Call implements tools.Tool.
func (t *Tool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	if t.config.Check != nil {
		if err := t.config.Check(c); err != nil {
			return tools.Result{}, err
		}
	}
	q, err := json.Marshal(request{t.config.Name, append([]string{}, c.Args...), c.Input, c.Dir, t.config.Instance})
	if err != nil {
		return tools.Result{}, fmt.Errorf("write call: %w", err)
	}
	cmd := exec.CommandContext(ctx, t.path, t.config.Command[1:]...) //nolint:gosec // the user's own program
	cmd.Dir, cmd.Stdin = t.config.Dir, bytes.NewReader(append(q, '\n'))
	out, errs := &head{most: env.MaxToolAnswer}, &tail{most: maxErrors}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.WaitDelay = lingering
	f := family.New(cmd, t.config.Env)
	cmd.Cancel = f.Kill
	err = f.Run()
	res := tools.Result{Output: t.output(out), Details: Details{cmd.ProcessState.ExitCode(), t.errors(errs), out.size}}
	if int64(len(out.data)) < out.size {
		res.Size = out.size
	}
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return res, context.Cause(ctx)
	case failed:
		return res, ended(exit, t.errors(errs))
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return tools.Result{}, fmt.Errorf("run it: %w", err)
	}
	return res, nil
}

// ended is a program's own failure, with the last it said.
func ended(exit *exec.ExitError, said string) error {
	text := strings.TrimSpace(strings.ToValidUTF8(said[max(0, len(said)-maxTail):], "\uFFFD"))
	if text == "" {
		return fmt.Errorf("the program ended with %s", exit.ProcessState)
	}
	return fmt.Errorf("the program ended with %s:\n%s", exit.ProcessState, text)
}
