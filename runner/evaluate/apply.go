package evaluate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minibench/mini/env"
)

// Where things are in the sandbox, as the official harness has them.
const (
	repository = "/testbed"
	patchPath  = "/tmp/patch.diff"
	scriptPath = "/eval.sh"
)

// commandTime bounds everything that is run beside the script.
const commandTime = 10 * time.Minute

// commandOutput bounds what is kept of its output, in bytes.
const commandOutput = 1 << 20

// way is a command that may apply the patch: a program, its flags, and the
// patch as the last argument. No shell has a part in it.
type way struct {
	program []string
	name    string
}

// ways are tried in this order; the first that ends with 0 wins.
var ways = []way{
	{[]string{"git", "apply", "--verbose"}, "git apply --verbose"},
	{[]string{"git", "apply", "--verbose", "--3way"}, "git apply --verbose --3way"},
	{[]string{"git", "apply", "--verbose", "--reject"}, "git apply --verbose --reject"},
	{[]string{"patch", "--batch", "--forward", "--fuzz=5", "-p1", "-i"}, "patch --batch --forward --fuzz=5 -p1 -i"},
}

// backwards asks whether the repository has what the patch brings already,
// which counts as applied.
var backwards = way{[]string{"git", "apply", "--check", "--reverse"}, "git apply --check --reverse"}

// reset takes away what an attempt left half done, and whatever else git does
// not know, of the image too.
const reset = "git checkout -- . ; git clean -fd"

// errUnfit is for an image in which no patch can be applied.
var errUnfit = errors.New("the image is not one that patches can be evaluated in")

// apply tries the ways to apply the patch that is in the sandbox, and returns
// the name of the one that worked. It is "" when none did; the output is then
// that of the last. The error is the sandbox's.
func (b box) apply(ctx context.Context) (with, output string, err error) {
	for i, w := range ways {
		if i > 0 {
			if _, err := b.run(ctx, env.Command{Interpreter: []string{"/bin/bash", "-c"}, Script: reset, Dir: repository}); err != nil {
				return "", "", err
			}
		}
		res, err := b.try(ctx, w)
		if err != nil {
			return "", "", err
		}
		output = string(res.Output)
		switch {
		case i == 0 && res.Failure != "":
			return "", "", &env.Error{
				Status: env.StartFailed, Op: "apply the patch", Hint: "it has to have git, and a repository in " + repository,
				Err: fmt.Errorf("%w: %s", errUnfit, res.Failure),
			}
		case res.Failure != "":
			output = res.Failure
		case res.ExitCode == 0:
			return w.name, output, nil
		}
		b.log.say("the patch does not apply with: %s", w.name)
	}
	res, err := b.try(ctx, backwards)
	if err == nil && res.Failure == "" && res.ExitCode == 0 {
		return backwards.name, string(res.Output), nil
	}
	return "", output, err
}

func (b box) try(ctx context.Context, w way) (env.Result, error) {
	return b.run(ctx, env.Command{Interpreter: w.program, Script: patchPath, Dir: repository})
}

// diff puts the state of the repository into the log. That it fails says
// nothing of the patch.
func (b box) diff(ctx context.Context, when string) error {
	b.log.say("Git diff %s:", when)
	_, err := b.run(ctx, env.Command{
		Interpreter: []string{"git", "-c", "core.fileMode=false"}, Script: "diff", Dir: repository,
		Sink: &validText{w: b.log}, OutputLimit: 16 << 20,
	})
	b.log.say("end of the git diff %s", when)
	return err
}

// run is for commands that take no time to speak of: one that does is a sign
// of a machine in trouble.
func (b box) run(ctx context.Context, c env.Command) (env.Result, error) {
	c.Timeout = commandTime
	if c.OutputLimit == 0 {
		c.OutputLimit = commandOutput
	}
	res, err := b.Execute(ctx, c)
	if err == nil && res.TimedOut {
		err = fmt.Errorf("%.80s took longer than %s", c.Script, commandTime)
	}
	return res, err
}
