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

// commandTimeout limits every command except the evaluation script.
const commandTimeout = 10 * time.Minute

// commandOutputLimit is the maximum stored output of a command that does not
// set its own limit, in bytes.
const commandOutputLimit = 1 << 20

// applyCommand is a command that applies or checks the patch. It runs program
// without a shell, with the patch file as the last argument.
type applyCommand struct {
	program []string
	name    string
}

// applyCommands are the commands that applyPatch tries in order until one exits
// with 0.
var applyCommands = []applyCommand{
	{[]string{"git", "apply", "--verbose"}, "git apply --verbose"},
	{[]string{"git", "apply", "--verbose", "--3way"}, "git apply --verbose --3way"},
	{[]string{"git", "apply", "--verbose", "--reject"}, "git apply --verbose --reject"},
	{[]string{"patch", "--batch", "--forward", "--fuzz=5", "-p1", "-i"}, "patch --batch --forward --fuzz=5 -p1 -i"},
}

// reverseCheck tests whether the repository already contains the changes of the
// patch. Such a patch counts as applied.
var reverseCheck = applyCommand{[]string{"git", "apply", "--check", "--reverse"}, "git apply --check --reverse"}

// resetCommand discards the changes that a failed command made. It also deletes
// untracked files of the image, as the official harness does.
const resetCommand = "git checkout -- . ; git clean -fd"

// errUnusableImage reports an image in which git or the evaluation script
// cannot be started.
var errUnusableImage = errors.New("the image cannot be used for evaluations")

// applyPatch tries to apply the patch file in the sandbox. It returns the name
// of the command that succeeded and its output, or "" and the output of the last
// of applyCommands. The error is an infrastructure failure.
func (s evalSandbox) applyPatch(ctx context.Context) (appliedBy, output string, err error) {
	for i, command := range applyCommands {
		if i > 0 {
			c := env.Command{Interpreter: []string{"/bin/bash", "-c"}, Script: resetCommand, Dir: repoDir}
			if _, err := s.execute(ctx, c); err != nil {
				return "", "", err
			}
		}
		res, err := s.tryCommand(ctx, command)
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
			return command.name, output, nil
		}
		s.log.logf("patch command failed: %s", command.name)
	}
	res, err := s.tryCommand(ctx, reverseCheck)
	if err == nil && res.Failure == "" && res.ExitCode == 0 {
		return reverseCheck.name, string(res.Output), nil
	}
	return "", output, err
}

func (s evalSandbox) tryCommand(ctx context.Context, command applyCommand) (env.Result, error) {
	return s.execute(ctx, env.Command{Interpreter: command.program, Script: patchPath, Dir: repoDir})
}

// logDiff writes the output of git diff to the log. It ignores the exit code.
func (s evalSandbox) logDiff(ctx context.Context, when string) error {
	s.log.logf("Git diff %s:", when)
	_, err := s.execute(ctx, env.Command{
		Interpreter: []string{"git", "-c", "core.fileMode=false"}, Script: "diff", Dir: repoDir,
		Sink: &utf8Writer{w: s.log}, OutputLimit: 16 << 20,
	})
	s.log.logf("End of git diff %s", when)
	return err
}

// execute runs a short command. A timeout is an infrastructure failure.
func (s evalSandbox) execute(ctx context.Context, c env.Command) (env.Result, error) {
	c.Timeout = commandTimeout
	if c.OutputLimit == 0 {
		c.OutputLimit = commandOutputLimit
	}
	res, err := s.Execute(ctx, c)
	if err == nil && res.TimedOut {
		err = fmt.Errorf("run %.80s: timeout after %s", c.Script, commandTimeout)
	}
	return res, err
}
