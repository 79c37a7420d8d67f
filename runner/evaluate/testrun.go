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

// closeTimeout bounds closing a sandbox. It is independent of other timeouts.
const closeTimeout = time.Minute

// LogUnwritable is the status of a run whose log could not be written on this
// machine. Its class is infrastructure.
const LogUnwritable env.Status = "LogUnwritable"

// errVerdictFound ends a run whose verdict was found after its sandbox had
// identified the image.
var errVerdictFound = errors.New("the verdict exists already")

// testRun evaluates a patch in one sandbox and writes the files of the run.
type testRun struct {
	root      *rootdir.Dir // the run folder
	config    Config
	instance  datasets.Instance
	plan      plan
	patch     []byte
	unpatched bool // no patch is applied (noop)
	files     grade.Files
	logMemory *semaphore.Weighted // memory for logs, shared by all workers
	// started is called when the sandbox runs. An error ends the run.
	started func(env.Info) error
}

// run makes the test run. It returns an error if the run folder is not
// writable, ctx is cancelled or started fails; other failures are in the
// returned attempt.
func (t *testRun) run(ctx context.Context) (a verdicts.TestRun, err error) {
	a = verdicts.TestRun{Start: time.Now()}
	defer func() { a.Seconds = time.Since(a.Start).Seconds() }()
	if err := t.root.RemoveAll(t.files.Dir); err != nil { // files of a killed run
		return a, fmt.Errorf("clear %s: %w", t.files.Dir, err)
	}
	if err := t.root.MkdirAll(t.files.Dir); err != nil {
		return a, fmt.Errorf("create folder of run: %w", err)
	}
	log, err := newRunLog(t.root, t.files.Log)
	if err != nil {
		return a, fmt.Errorf("write log of run: %w", err)
	}
	failed := t.runRecovered(ctx, log, &a)
	stop := errors.Is(failed, errVerdictFound) || errors.As(failed, new(*folderError))
	switch {
	case ctx.Err() != nil:
		failed, stop = context.Cause(ctx), true
	case failed != nil && !stop:
		setFailure(&a, failed)
		log.logf("the evaluation failed: %v", failed)
	}
	if err := log.Close(); err != nil && !stop {
		return a, fmt.Errorf("write log of run: %w", err)
	}
	if stop {
		return a, failed
	}
	return a, classifyFailure(ctx, &a, t.logMemory, t.root, t.files)
}

// folderError is a failed write to the run folder. The evaluation stops,
// because further results would be lost.
type folderError struct{ err error }

func (e *folderError) Error() string { return "write files of run: " + e.err.Error() }
func (e *folderError) Unwrap() error { return e.err }

// runRecovered calls runInSandbox and converts a panic to an error, so that a
// bug affects one run only.
func (t *testRun) runRecovered(ctx context.Context, log *runLog, a *verdicts.TestRun) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.logf("%s", debug.Stack())
			err = fmt.Errorf("%w: %v", errBug, p)
		}
	}()
	return t.runInSandbox(ctx, log, a)
}

// errBug reports a panic.
var errBug = errors.New("internal error in mini, please report it")

// runInSandbox performs the steps of the official harness, in its order. The
// error is an infrastructure failure.
func (t *testRun) runInSandbox(ctx context.Context, log *runLog, a *verdicts.TestRun) (err error) {
	log.logf("evaluating %s in %s", t.instance.ID, t.instance.ImageName())
	sandbox, err := t.config.Sandboxes.Start(ctx, t.instance)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if failed := sandbox.Close(ctx); failed != nil {
			log.logf("close the sandbox: %v", failed) // Sandboxes reports it and cleans up
		}
	}()
	if err := t.started(sandbox.Info()); err != nil {
		return err
	}
	b := evalSandbox{Environment: sandbox, log: log, root: t.root}
	if err := t.root.WriteFile(t.files.Patch, t.patch); err != nil {
		return &folderError{err}
	}
	if !t.unpatched {
		done, err := t.applyPatch(ctx, b, a)
		if err != nil || !done {
			return err
		}
	}
	return t.runScript(ctx, b, a)
}

// applyPatch copies the patch into the sandbox and applies it. It returns false
// if the patch does not apply, which is a result.
func (t *testRun) applyPatch(ctx context.Context, b evalSandbox, a *verdicts.TestRun) (applied bool, err error) {
	if err := b.putFile(ctx, patchPath, t.patch); err != nil {
		return false, fmt.Errorf("copy the patch into the sandbox: %w", err)
	}
	with, output, err := b.applyPatch(ctx)
	if err != nil {
		return false, err
	}
	if with == "" {
		b.log.logf("%s:\n%s", applyFailed, output)
		a.Class, a.Reason = verdicts.ApplyFailed, "the patch does not apply: "+lastLine(output)
		return false, nil
	}
	a.AppliedWith = with
	b.log.logf("%s:\n%s", appliedPatch, output)
	return true, nil
}

// runScript copies the evaluation script into the sandbox, runs it and grades
// its log.
func (t *testRun) runScript(ctx context.Context, b evalSandbox, a *verdicts.TestRun) error {
	if err := b.logDiff(ctx, "before"); err != nil {
		return err
	}
	text := []byte(t.plan.script.Text)
	if err := t.root.WriteFile(t.files.Script, text); err != nil {
		return &folderError{err}
	}
	if err := b.putFile(ctx, scriptPath, text); err != nil {
		return fmt.Errorf("copy the script into the sandbox: %w", err)
	}
	res, err := b.runScript(ctx, t.config.Timeout, t.files.TestOutput)
	a.LogBytes, a.LogTruncated, a.OOMKilled = res.Bytes, res.Truncated, max(res.OOMKilled, 0)
	switch {
	case err != nil:
		return err
	case res.Failure != "":
		err := fmt.Errorf("%w: %s", errUnusableImage, res.Failure)
		return &env.Error{Status: env.StartFailed, Op: "run the script", Err: err}
	case res.TimedOut:
		a.Class = verdicts.TimedOut
		a.Reason = fmt.Sprintf("the evaluation script exceeded its timeout of %s", t.config.Timeout)
		b.log.logf("Timeout error: %d seconds exceeded.", int64(t.config.Timeout/time.Second))
		return nil
	}
	b.log.logf("the script exited with code %d after %s", res.ExitCode, res.Duration.Round(time.Millisecond))
	if err := b.logDiff(ctx, "after"); err != nil {
		b.log.logf("%v", err) // the log of the tests is complete
	}
	return t.gradeLog(ctx, b.log, a)
}

// setFailure records an infrastructure failure.
func setFailure(a *verdicts.TestRun, err error) {
	a.Class, a.Reason = verdicts.Infrastructure, err.Error()
	a.Permanent = errors.Is(err, errUnusableImage) || errors.Is(err, errBug)
	if envErr, ok := errors.AsType[*env.Error](err); ok {
		a.Status, a.Hint = envErr.Status, envErr.Hint
		a.Permanent = a.Permanent || envErr.Status == env.ImageNotFound
	}
	if errors.Is(err, env.ErrSink) {
		a.Status, a.Hint = LogUnwritable, "free disk space for the run folder, then run the same command again"
	}
}
