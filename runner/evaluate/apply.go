package evaluate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minibench/mini/env"
)

// Paths in the sandbox, as in the official harness.
const (
	repoDir    = "/testbed"
	patchPath  = "/tmp/patch.diff"
	scriptPath = "/eval.sh"
)

// commandTimeout bounds every command except the evaluation script.
const commandTimeout = 10 * time.Minute

// commandOutputLimit is the maximum stored output of such a command, in bytes.
const commandOutputLimit = 1 << 20

// applyCommand is a command that may apply the patch: a program and its flags.
// The patch file is its last argument. It runs without a shell.
type applyCommand struct {
	program []string
	name    string
}

// applyCommands are tried in order until one exits with 0.
var applyCommands = []applyCommand{
	{[]string{"git", "apply", "--verbose"}, "git apply --verbose"},
	{[]string{"git", "apply", "--verbose", "--3way"}, "git apply --verbose --3way"},
	{[]string{"git", "apply", "--verbose", "--reject"}, "git apply --verbose --reject"},
	{[]string{"patch", "--batch", "--forward", "--fuzz=5", "-p1", "-i"}, "patch --batch --forward --fuzz=5 -p1 -i"},
}

// reverseCheck tests whether the repository contains the changes of the patch
// already, which counts as applied.
var reverseCheck = applyCommand{[]string{"git", "apply", "--check", "--reverse"}, "git apply --check --reverse"}

// resetCommand discards the changes of a failed command, and untracked files,
// including those of the image.
const resetCommand = "git checkout -- . ; git clean -fd"

// errUnusableImage reports an image in which no patch can be applied.
var errUnusableImage = errors.New("the image cannot be used for evaluations")

// applyPatch tries to apply the patch file in the sandbox. It returns the name
// of the command that succeeded, or "" and the output of the last command. The
// error is an infrastructure failure.
func (b evalSandbox) applyPatch(ctx context.Context) (with, output string, err error) {
	for i, w := range applyCommands {
		if i > 0 {
			c := env.Command{Interpreter: []string{"/bin/bash", "-c"}, Script: resetCommand, Dir: repoDir}
			if _, err := b.execute(ctx, c); err != nil {
				return "", "", err
			}
		}
		res, err := b.tryCommand(ctx, w)
		if err != nil {
			return "", "", err
		}
		output = string(res.Output)
		switch {
		case i == 0 && res.Failure != "":
			return "", "", &env.Error{
				Status: env.StartFailed, Op: "apply the patch", Hint: "use an image with git and a repository in " + repoDir,
				Err: fmt.Errorf("%w: %s", errUnusableImage, res.Failure),
			}
		case res.Failure != "":
			output = res.Failure
		case res.ExitCode == 0:
			return w.name, output, nil
		}
		b.log.logf("patch command failed: %s", w.name)
	}
	res, err := b.tryCommand(ctx, reverseCheck)
	if err == nil && res.Failure == "" && res.ExitCode == 0 {
		return reverseCheck.name, string(res.Output), nil
	}
	return "", output, err
}

func (b evalSandbox) tryCommand(ctx context.Context, w applyCommand) (env.Result, error) {
	return b.execute(ctx, env.Command{Interpreter: w.program, Script: patchPath, Dir: repoDir})
}

// logDiff writes the repository's changes to the log. A failed git diff is not
// an error.
func (b evalSandbox) logDiff(ctx context.Context, when string) error {
	b.log.logf("Git diff %s:", when)
	_, err := b.execute(ctx, env.Command{
		Interpreter: []string{"git", "-c", "core.fileMode=false"}, Script: "diff", Dir: repoDir,
		Sink: &utf8Writer{w: b.log}, OutputLimit: 16 << 20,
	})
	b.log.logf("End of git diff %s", when)
	return err
}

// execute runs a short command. A timeout is an infrastructure failure.
func (b evalSandbox) execute(ctx context.Context, c env.Command) (env.Result, error) {
	c.Timeout = commandTimeout
	if c.OutputLimit == 0 {
		c.OutputLimit = commandOutputLimit
	}
	res, err := b.Execute(ctx, c)
	if err == nil && res.TimedOut {
		err = fmt.Errorf("run %.80s: timeout after %s", c.Script, commandTimeout)
	}
	return res, err
}
