package harborrun

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

const (
	defaultVerifierTimeout = 600
	defaultCollectTimeout  = 60
	// maxTestOutput bounds the output of the tests that is kept, in bytes: its start and its
	// end.
	maxTestOutput = 16 << 20
)

// verify runs the tests of a step and stores their verdict. It reports whether the rewards are
// enough for the next step. The error is about the sandbox: there is no verdict then.
func (a *attempt) verify(ctx context.Context, sandbox env.Environment, step harbor.Step) (isReached bool, err error) {
	a.Log.Emit(runner.Event{Type: runner.PhaseChanged, Instance: a.instance.ID, Repetition: a.eventRepetition(), Attempt: a.number, Phase: runner.PhaseTesting})
	for _, c := range step.Verifier.Collect {
		res, err := a.as(sandbox, c.User).Execute(ctx, env.Command{Script: c.Command, Timeout: orDefault(c.Timeout, defaultCollectTimeout)})
		if err != nil {
			return false, setupError(ctx, "run verifier.collect", err)
		}
		if res.ExitCode != 0 {
			a.warnings = append(a.warnings, fmt.Sprintf("verifier.collect: %.60q: %s", c.Command, cmp.Or(res.Failure, fmt.Sprintf("exit code %d", res.ExitCode))))
		}
	}
	patch, err := a.takeDiff(ctx, sandbox) // before there may be a network
	if err != nil {
		return false, a.unusable(ctx, step, "take the diff of the agent", err)
	}
	isSeparate, next := a.task.IsSeparate(step), step.Verifier.Phase
	if isSeparate {
		next = step.Agent
	}
	if err := a.endPhase(ctx, sandbox, next, a.KeepProcesses && !isSeparate); err != nil {
		return false, a.unusable(ctx, step, "end the processes of the agent", err)
	}
	artifacts, warnings, err := a.copyArtifacts(ctx, sandbox, step, a.dir(step, "artifacts"))
	a.warnings = append(a.warnings, warnings...)
	if err != nil {
		return false, setupError(ctx, "copy artifacts", err)
	}
	verifier := sandbox
	if isSeparate {
		verifier, err = a.startVerifier(ctx, step, func(e env.Environment, _ docker.Image, h *harbor.Healthcheck) error {
			if err := putArtifacts(ctx, e, artifacts); err != nil {
				return err
			}
			return waitHealthy(ctx, e, h)
		})
		if err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, verifier.Close(context.WithoutCancel(ctx))) }()
	}
	if err := a.putTests(ctx, verifier, step); err != nil {
		return false, a.unusable(ctx, step, "copy the tests", err)
	}
	v, err := a.runTests(ctx, verifier, step, "verifier")
	if err == nil && a.tree != nil {
		if a.shared = v.Rewards; v.Rewards == nil {
			a.warnings = append(a.warnings, "no rewards in the container of the agent: "+v.Reason)
		}
		v, err = a.runPristine(ctx, step, patch)
	}
	if err != nil {
		return false, setupError(ctx, "run the tests", err)
	}
	a.steps = append(a.steps, v)
	return step.MinReward.IsReached(v.Rewards), nil
}

// takeDiff ends the processes of the agent and takes its diff, if the tests run in a pristine
// container.
func (a *attempt) takeDiff(ctx context.Context, sandbox env.Environment) ([]byte, error) {
	if a.tree == nil {
		return nil, nil
	}
	if err := killAll(ctx, sandbox); err != nil {
		return nil, err
	}
	diff, err := a.tree.Diff(ctx)
	if err == nil && diff.OmittedCount > 0 {
		a.warnings = append(a.warnings, "the diff of the agent leaves out "+text.Count(diff.OmittedCount, "file"))
	}
	return diff.Patch, err
}

// pristineDir is the folder of an attempt with the files of the tests in a pristine
// container.
const pristineDir = "pristine"

// runPristine runs the tests of a step in a fresh container of the task's image, which has
// the patch and nothing else of the agent's.
func (a *attempt) runPristine(ctx context.Context, step harbor.Step, patch []byte) (v verdicts.StepVerdict, err error) {
	dir := a.dir(step, pristineDir)
	if err := a.Folder.Root.MkdirAll(dir); err != nil {
		return v, err
	}
	if err := a.Folder.Root.WriteFile(filepath.Join(dir, "model.patch"), a.Redact(patch)); err != nil {
		return v, err
	}
	e, err := a.startVerifier(ctx, step, func(e env.Environment, image docker.Image, h *harbor.Healthcheck) error {
		if err := a.prepare(ctx, a.as(e, ""), image, h); err != nil {
			return err
		}
		return applyPatch(ctx, e, patch)
	})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	if err := a.putTests(ctx, e, step); err != nil {
		return v, err
	}
	return a.runTests(ctx, e, step, pristineDir)
}

// applyPatch applies a patch to the repository in the working directory.
func applyPatch(ctx context.Context, e env.Environment, patch []byte) error {
	if len(patch) == 0 {
		return nil
	}
	into, ok := env.AsFiles(e)
	if !ok {
		return errors.New("the sandbox takes no files")
	}
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	err := w.WriteHeader(&tar.Header{Name: "model.patch", Mode: 0o644, Size: int64(len(patch))})
	if err == nil {
		_, err = w.Write(patch)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	if err := into.Put(ctx, "/tmp/mini-patch", &tree); err != nil {
		return err
	}
	dir := strings.ReplaceAll(e.Info().Dir, "'", `'\''`)
	return runRoot(ctx, e, "cd '"+dir+"' && export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' && "+
		"cd \"$(git rev-parse --show-toplevel)\" && git apply --whitespace=nowarn /tmp/mini-patch/model.patch && rm -r /tmp/mini-patch")
}

// unusable records that the tests of a step cannot run, because the agent has left a container
// in which no command runs. It returns an error if the sandbox failed instead.
func (a *attempt) unusable(ctx context.Context, step harbor.Step, op string, err error) error {
	if _, ok := errors.AsType[*env.Error](err); ok || ctx.Err() != nil || a.task.IsSeparate(step) {
		return setupError(ctx, op, err)
	}
	a.steps = append(a.steps, verdicts.StepVerdict{Name: step.Name, Class: verdicts.Error, Reason: "AddTestsDirError: " + op + ": " + err.Error()})
	return nil
}

// eventRepetition returns the number of the repetition for events; 0 if there is only one.
func (a *attempt) eventRepetition() int {
	if a.Repeated {
		return a.repetition
	}
	return 0
}

// startVerifier starts a fresh container for the tests of a step, with nothing of the agent's
// container, and calls prepare with it, its image and its health check.
func (a *attempt) startVerifier(
	ctx context.Context, step harbor.Step, prepare func(env.Environment, docker.Image, *harbor.Healthcheck) error,
) (_ env.Environment, err error) {
	e, c := a.task.Environment, a.Base
	c.Instance = a.instance.ID
	if step.Verifier.Environment != nil {
		e = *step.Verifier.Environment
	}
	variables, err := harbor.Expand(e.Env, a.Lookup)
	if err != nil {
		return nil, setupError(ctx, "read task "+a.instance.ID, err)
	}
	image, dir, err := a.task.VerifierImage(step)
	if err == nil && dir != "" {
		err = a.Images.Ensure(ctx, image, dir, e)
	}
	if err != nil {
		return nil, setupError(ctx, "build the image of the verifier", err)
	}
	c.Image = image
	sandbox, err := a.Start(ctx, configure(c, e, e.IsOffline(step.Verifier.Phase), variables))
	if err != nil {
		return nil, err
	}
	own, err := a.imageOf(ctx, sandbox)
	if err == nil {
		err = prepare(sandbox, own, e.Healthcheck)
	}
	if err != nil {
		return nil, errors.Join(setupError(ctx, "prepare the container of the verifier", err), sandbox.Close(context.WithoutCancel(ctx)))
	}
	return sandbox, nil
}

// putTests clears the folders of the tests and the rewards, and copies the tests: those of
// the task, and over them those of the step. An image of a separate verifier may have them.
func (a *attempt) putTests(ctx context.Context, e env.Environment, step harbor.Step) error {
	clear := "rm -rf " + verifierDir + " && mkdir -p " + verifierDir + " && chmod 777 " + verifierDir
	isBuilt := a.task.IsSeparate(step) && step.Verifier.Environment != nil && runRoot(ctx, e, "test -f /tests/test.sh") == nil
	if !isBuilt {
		clear += " && rm -rf /tests"
	}
	if err := runRoot(ctx, e, clear); err != nil {
		return err
	}
	if isBuilt {
		return runRoot(ctx, e, "chmod a+x /tests/test.sh")
	}
	for _, dir := range []string{"", step.Dir} {
		tests := filepath.Join(a.task.Dir, filepath.FromSlash(dir), "tests")
		if _, err := os.Stat(tests); err != nil {
			continue
		}
		if err := putFolder(ctx, e, "/", tests); err != nil {
			return err
		}
		if step.Dir == "" {
			break
		}
	}
	return runRoot(ctx, e, "chmod -R a+rX /tests && chmod a+x /tests/test.sh")
}

// runTests runs test.sh and reads the rewards. Its exit code does not count. name is the
// folder for the files of the tests.
func (a *attempt) runTests(ctx context.Context, e env.Environment, step harbor.Step, name string) (v verdicts.StepVerdict, err error) {
	v, a.testsDir = verdicts.StepVerdict{Name: step.Name}, name
	variables, err := harbor.Expand(step.Verifier.Env, a.Lookup)
	if err != nil {
		return v, err
	}
	timeout := orDefault(step.Verifier.Timeout, defaultVerifierTimeout)
	root, dir := a.Folder.Root, a.dir(step, name)
	if err := root.MkdirAll(dir); err != nil {
		return v, err
	}
	user := step.Verifier.User
	if a.task.IsSeparate(step) && user == "" {
		image, err := a.imageOf(ctx, e)
		if err != nil {
			return v, err
		}
		user = harbor.User(cmp.Or(image.User, "0:0"))
	}
	res, err := a.as(e, user).Execute(ctx, env.Command{
		Script: "/tests/test.sh", Interpreter: []string{"bash", "-c"}, Env: variables, Timeout: timeout, OutputLimit: maxTestOutput,
	})
	if err != nil {
		return v, err
	}
	if err := root.WriteFile(filepath.Join(dir, "test-stdout.txt"), a.Redact(res.Output)); err != nil {
		return v, err
	}
	v.Seconds = res.Duration.Seconds()
	a.logBytes, a.logTruncated = a.logBytes+res.Bytes, a.logTruncated || res.Truncated
	if err := killAll(ctx, e); err != nil { // before the rewards are read
		if _, ok := errors.AsType[*env.Error](err); ok || ctx.Err() != nil {
			return v, err
		}
		v.Class, v.Reason = verdicts.Error, "the processes of the tests cannot be ended: "+err.Error()
		return v, nil
	}
	files, ok := env.AsFiles(e)
	if !ok {
		return v, errors.New("the sandbox gives no files")
	}
	v.Rewards, err = readRewards(ctx, files)
	rewardErr, isRewardErr := errors.AsType[*RewardError](err)
	switch {
	case res.Failure != "":
		v.Class, v.Reason, v.Rewards = verdicts.Error, res.Failure, nil
	case res.TimedOut:
		v.Class, v.Reason, v.Rewards = verdicts.TimedOut, fmt.Sprintf("VerifierTimeoutError: the tests take longer than %s", timeout), nil
	case isRewardErr:
		v.Class, v.Reason = verdicts.Error, rewardErr.Error()
	case err != nil:
		return v, err
	default:
		v.Class, v.Reason = classOf(v.Rewards)
	}
	return v, a.keepFiles(ctx, files, dir)
}

// keepFiles copies the results of the tests to the folder of the attempt, as far as they are
// regular files.
func (a *attempt) keepFiles(ctx context.Context, files env.Files, dir string) error {
	for _, f := range []struct {
		name  string
		limit int64
	}{{"reward.json", maxRewardFile}, {"reward.txt", maxRewardFile}, {"ctrf.json", maxCTRF}} {
		data, err := readFile(ctx, files, verifierDir+"/"+f.name, f.limit)
		if _, isEnv := errors.AsType[*env.Error](err); isEnv || ctx.Err() != nil {
			return err
		}
		if err != nil {
			continue // it is not there, or no file to keep
		}
		if err := a.Folder.Root.WriteFile(filepath.Join(dir, f.name), a.Redact(data)); err != nil {
			return err
		}
	}
	return nil
}

// classOf returns the class of rewards. Only a reward of at least 1 resolves a task.
func classOf(rewards map[string]float64) (verdicts.Class, string) {
	if n, ok := verdicts.Reward(rewards); ok && n >= 1 {
		return verdicts.Resolved, ""
	}
	return verdicts.Unresolved, describe(rewards)
}

// writeVerdict stores the verdict on the attempt.
func (a *attempt) writeVerdict(out trajectories.Outcome, start time.Time) error {
	all := make([]map[string]float64, len(a.task.Steps))
	dir, err := filepath.Rel(a.Folder.Dir, a.dir(harbor.Step{}, cmp.Or(a.testsDir, "verifier")))
	if err != nil {
		return err
	}
	run := verdicts.TestRun{Purpose: verdicts.ForVerdict, Dir: filepath.ToSlash(dir), Start: start, LogBytes: a.logBytes, LogTruncated: a.logTruncated}
	for i, s := range a.steps {
		all[i] = s.Rewards
		run.Seconds += s.Seconds
		if s.Class == verdicts.Error || s.Class == verdicts.TimedOut {
			run.Class, run.Reason = s.Class, s.Reason
		}
	}
	r := verdicts.Record{
		Format: verdicts.Format, Instance: a.instance.ID, Model: a.Model, RunID: a.RunID, Kind: verdicts.KindHarbor,
		Rewards: combineRewards(a.task.Strategy, all), SharedRewards: a.shared,
		Basis: verdicts.Basis{
			PatchSHA256: verdicts.PatchHash(out.Submission), PatchBytes: len(out.Submission),
			Image: a.instance.Image, MiniVersion: a.MiniVersion, RowSHA256: verdicts.HashJSON(a.instance.Row),
		},
	}
	if len(r.Rewards) > 0 {
		run.Class, run.Reason = classOf(r.Rewards)
	}
	if last := a.steps[len(a.steps)-1]; run.Class == "" {
		run.Class, run.Reason = verdicts.Unresolved, fmt.Sprintf("step %s ended the attempt: %s", last.Name, describe(last.Rewards))
	}
	if a.task.MultiStep {
		r.Steps = a.steps
	}
	if n := a.repetition; n > 1 {
		r.Repetition, r.RunID = n, fmt.Sprintf("%s-sample-%d", a.RunID, n)
	}
	r.Runs = []verdicts.TestRun{run}
	r.DeriveClass()
	signed, err := r.WithSignature(a.SigningKey)
	if err == nil {
		err = verdicts.Write(a.Folder.Root, verdicts.Path(a.Folder.Dir, r), signed)
	}
	if err == nil {
		a.Log.Emit(runner.Event{
			Type: runner.Verdict, Instance: a.instance.ID, Repetition: a.eventRepetition(), ResultModel: a.Model, Attempt: 1,
			Verdict: string(r.Class), Text: r.Reason, Elapsed: max(r.Seconds, 0.001), // 0 stands for a verdict without tests
		})
	}
	return err
}
