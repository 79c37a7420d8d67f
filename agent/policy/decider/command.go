package decider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/tools/family"
)

// Command is a program of this machine that decides. It is run once for each
// question, without a shell, and whatever it started dies with it.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Env is all of its environment. Keys have no place in it.
	Env []string
	// Dir is where it runs; empty is the current folder.
	Dir string
	// Timeout bounds the answer; 0 is DefaultTimeout.
	Timeout time.Duration
}

var _ policy.Asked = Command{}

// lingering is how long a program that has ended may keep its output open.
const lingering = time.Second

// Ask implements policy.Asked.
func (c Command) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	question, err := json.Marshal(q)
	if err != nil {
		return policy.Answer{}, fmt.Errorf("write question: %w", err)
	}
	limit := c.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...) //nolint:gosec // the user's own program
	cmd.Dir = c.Dir
	cmd.Stdin = bytes.NewReader(append(question, '\n'))
	out := &bounded{}
	cmd.Stdout = out
	cmd.WaitDelay = lingering
	f := family.New(cmd, c.Env)
	cmd.Cancel = f.Kill
	err = f.Run()
	name := fmt.Sprintf("%.60q", c.Args[0])
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return policy.Answer{}, fmt.Errorf("%s gave none within %v", name, limit)
	case failed:
		return policy.Answer{}, fmt.Errorf("%s ended with %s", name, exit.ProcessState)
	case err != nil:
		return policy.Answer{}, fmt.Errorf("run %s: %w", name, err)
	}
	a, err := parse(out.kept.Bytes())
	if err != nil {
		return policy.Answer{}, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// bounded keeps as much of an output as an answer may have, and a byte more. The
// buffer is not embedded: io.Copy would find its ReadFrom, which has no bound.
type bounded struct{ kept bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), maxAnswer+1-b.kept.Len())])
	return len(p), nil
}
