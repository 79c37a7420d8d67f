package evaluate

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// closeTimeout limits the time for closing a sandbox. It is independent of other
// timeouts.
const closeTimeout = time.Minute

// LogUnwritable is the status of a run whose log could not be written on this
// machine. Its class is infrastructure.
const LogUnwritable env.Status = "LogUnwritable"

// errVerdictFound ends a run after its sandbox has started: the sandbox identified
// the image, and a verdict with that image exists.
var errVerdictFound = errors.New("the verdict exists already")

// testRun evaluates a patch in one sandbox and writes the files of the run.
type testRun struct {
	root      *rootdir.Dir // the run folder
	config    Config
	instance  datasets.Instance
	plan      plan
	patch     []byte
	unpatched bool // do not apply the patch (noop)
	files     grade.Files
	logMemory *semaphore.Weighted // limits the memory for logs of all workers
	// onStart is called when the sandbox has started. An error ends the run.
	onStart func(env.Info) error
}

// run makes the test run. It returns an error if the run folder is not
// writable, ctx is cancelled or onStart fails; other failures are in the result.
func (t *testRun) run(ctx context.Context) (result verdicts.TestRun, err error) {
	result = verdicts.TestRun{Start: time.Now()}
	defer func() { result.Seconds = time.Since(result.Start).Seconds() }()
	if err := t.root.RemoveAll(t.files.Dir); err != nil { // files of a killed run
		return result, fmt.Errorf("clear %s: %w", t.files.Dir, err)
	}
	if err := t.root.MkdirAll(t.files.Dir); err != nil {
		return result, fmt.Errorf("create folder of run: %w", err)
	}
	log, err := newRunLog(t.root, t.files.Log)
	if err != nil {
		return result, fmt.Errorf("write log of run: %w", err)
	}
	runErr := t.runRecovered(ctx, log, &result)
	stop := errors.Is(runErr, errVerdictFound) || errors.As(runErr, new(*folderError))
	switch {
	case ctx.Err() != nil:
		runErr, stop = context.Cause(ctx), true
	case runErr != nil && !stop:
		setFailure(&result, runErr)
		log.logf("the evaluation failed: %v", runErr)
	}
	if err := log.Close(); err != nil && !stop {
		return result, fmt.Errorf("write log of run: %w", err)
	}
	if stop {
		return result, runErr
	}
	return result, classifyFailure(ctx, &result, t.logMemory, t.root, t.files)
}

// folderError reports a file of the run folder that cannot be written or read.
// It stops the evaluation, because further results would be lost.
type folderError struct{ err error }

func (e *folderError) Error() string { return "write files of run: " + e.err.Error() }
func (e *folderError) Unwrap() error { return e.err }

// runRecovered calls runInSandbox and converts a panic to an error, so that a
// bug affects one run only.
func (t *testRun) runRecovered(ctx context.Context, log *runLog, result *verdicts.TestRun) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.logf("%s", debug.Stack())
			err = fmt.Errorf("%w: %v", errBug, p)
		}
	}()
	return t.runInSandbox(ctx, log, result)
}

// errBug reports a panic.
var errBug = errors.New("internal error in mini, please report it")

// runInSandbox performs the steps of the official harness in the same order. Its
// errors are infrastructure failures, except *folderError and errors of onStart.
func (t *testRun) runInSandbox(ctx context.Context, log *runLog, result *verdicts.TestRun) (err error) {
	log.logf("evaluating %s in %s", t.instance.ID, t.instance.ImageName())
	sandbox, err := t.config.Sandboxes.Start(ctx, t.instance)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if closeErr := sandbox.Close(ctx); closeErr != nil {
			log.logf("close the sandbox: %v", closeErr) // Sandboxes reports it and cleans up
		}
	}()
	if err := t.onStart(sandbox.Info()); err != nil {
		return err
	}
	s := evalSandbox{Environment: sandbox, log: log, root: t.root}
	if err := t.root.WriteFile(t.files.Patch, t.patch); err != nil {
		return &folderError{err}
	}
	if !t.unpatched {
		applied, err := t.applyPatch(ctx, s, result)
		if err != nil || !applied {
			return err
		}
	}
	return t.runScript(ctx, s, result)
}

// applyPatch copies the patch into the sandbox and applies it. It returns false
// and sets the class of result if the patch does not apply.
func (t *testRun) applyPatch(ctx context.Context, s evalSandbox, result *verdicts.TestRun) (applied bool, err error) {
	if err := s.putFile(ctx, patchPath, t.patch); err != nil {
		return false, fmt.Errorf("copy the patch into the sandbox: %w", err)
	}
	command, output, err := s.applyPatch(ctx)
	if err != nil {
		return false, err
	}
	if command == "" {
		s.log.logf("%s:\n%s", applyFailed, output)
		result.Class, result.Reason = verdicts.ApplyFailed, "the patch does not apply: "+lastLine(output)
		return false, nil
	}
	result.AppliedWith = command
	s.log.logf("%s:\n%s", appliedPatch, output)
	return true, nil
}

// runScript copies the evaluation script into the sandbox, runs it and grades
// its log.
func (t *testRun) runScript(ctx context.Context, s evalSandbox, result *verdicts.TestRun) error {
	if err := s.logDiff(ctx, "before"); err != nil {
		return err
	}
	text := []byte(t.plan.script.Text)
	if err := t.root.WriteFile(t.files.Script, text); err != nil {
		return &folderError{err}
	}
	if err := s.putFile(ctx, scriptPath, text); err != nil {
		return fmt.Errorf("copy the script into the sandbox: %w", err)
	}
	res, err := s.runScript(ctx, t.config.Timeout, t.files.TestOutput)
	result.LogBytes, result.LogTruncated, result.OOMKilled = res.Bytes, res.Truncated, max(res.OOMKilled, 0)
	switch {
	case err != nil:
		return err
	case res.Failure != "":
		err := fmt.Errorf("%w: %s", errUnusableImage, res.Failure)
		return &env.Error{Status: env.StartFailed, Op: "run the script", Err: err}
	case res.TimedOut:
		result.Class = verdicts.TimedOut
		result.Reason = fmt.Sprintf("the evaluation script exceeded its timeout of %s", t.config.Timeout)
		s.log.logf("Timeout error: %d seconds exceeded.", int64(t.config.Timeout/time.Second))
		return nil
	}
	s.log.logf("the script exited with code %d after %s", res.ExitCode, res.Duration.Round(time.Millisecond))
	if err := s.logDiff(ctx, "after"); err != nil {
		s.log.logf("%v", err) // the run succeeds: the log of the tests is complete
	}
	return t.gradeLog(ctx, s.log, result)
}

// setFailure records an infrastructure failure.
func setFailure(result *verdicts.TestRun, err error) {
	result.Class, result.Reason = verdicts.Infrastructure, err.Error()
	result.Permanent = errors.Is(err, errUnusableImage) || errors.Is(err, errBug)
	if envErr, ok := errors.AsType[*env.Error](err); ok {
		result.Status, result.Hint = envErr.Status, envErr.Hint
		result.Permanent = result.Permanent || envErr.Status == env.ImageNotFound || envErr.Status == env.SandboxRefused
	}
	if errors.Is(err, env.ErrSink) {
		result.Status, result.Hint = LogUnwritable, "free disk space for the run folder, then run the same command again"
	}
}
