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
	"github.com/minibench/mini/internal/procgroup"
)

// Command is a decider that is a local program. It runs once per question,
// without a shell; processes that it leaves running are killed.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Env is the program's entire environment. It should not contain API keys.
	Env []string
	// Dir is the working directory; empty means the current one.
	Dir string
	// Timeout bounds the answer; 0 means DefaultTimeout.
	Timeout time.Duration
}

var _ policy.Decider = Command{}

// waitDelay bounds how long the output may stay open after the program exits.
const waitDelay = time.Second

// Ask implements policy.Decider.
func (c Command) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	question, err := json.Marshal(q)
	if err != nil {
		return policy.Answer{}, fmt.Errorf("encode question: %w", err)
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
	out := &procgroup.HeadBuffer{Limit: maxAnswer + 1}
	cmd.Stdout = out
	cmd.WaitDelay = waitDelay
	group := procgroup.New(cmd, c.Env)
	cmd.Cancel = group.Kill
	err = group.Run()
	name := fmt.Sprintf("%.60q", c.Args[0])
	exit, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return policy.Answer{}, fmt.Errorf("%s: no answer within %v", name, limit)
	case isExit:
		return policy.Answer{}, fmt.Errorf("%s: %s", name, exit.ProcessState)
	case err != nil:
		return policy.Answer{}, fmt.Errorf("run %s: %w", name, err)
	}
	a, err := parseAnswer(out.Data)
	if err != nil {
		return policy.Answer{}, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}
