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
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
)

// closeTimeout bounds the end of a sandbox, on its own clock.
const closeTimeout = time.Minute

// LogUnwritable is the status of a run whose log could not be written on this
// machine. It is of the class infrastructure.
const LogUnwritable env.Status = "LogUnwritable"

// errKnown says that the verdict was found once the image was there.
var errKnown = errors.New("the verdict is known already")

// trial is a patch in one sandbox, and the files that come of it.
type trial struct {
	root      *rootdir.Dir // the files are below it
	config    Config
	instance  datasets.Instance
	plan      plan
	patch     []byte
	unpatched bool // a noop: nothing is applied
	files     grade.Files
	reading   *semaphore.Weighted // the memory for logs, of all workers
	// started is told of the sandbox. An error ends the trial.
	started func(env.Info) error
}

// run makes the trial. The error is that of a folder that cannot be written,
// the cause of ctx, or that of started; all else is in the attempt.
func (t *trial) run(ctx context.Context) (a verdicts.Attempt, err error) {
	a = verdicts.Attempt{Start: time.Now()}
	defer func() { a.Seconds = time.Since(a.Start).Seconds() }()
	if err := t.root.RemoveAll(t.files.Dir); err != nil { // what is left of a run that was killed
		return a, fmt.Errorf("clear %s: %w", t.files.Dir, err)
	}
	if err := t.root.MkdirAll(t.files.Dir); err != nil {
		return a, fmt.Errorf("make folder of run: %w", err)
	}
	log, err := newRunLog(t.root, t.files.Log)
	if err != nil {
		return a, fmt.Errorf("write log of run: %w", err)
	}
	failed := t.guarded(ctx, log, &a)
	stop := errors.Is(failed, errKnown) || errors.As(failed, new(*folderError))
	switch {
	case ctx.Err() != nil:
		failed, stop = context.Cause(ctx), true
	case failed != nil && !stop:
		fail(&a, failed)
		log.say("the evaluation failed: %v", failed)
	}
	if err := log.Close(); err != nil && !stop {
		return a, fmt.Errorf("write log of run: %w", err)
	}
	if stop {
		return a, failed
	}
	return a, classify(ctx, &a, t.reading, t.root, t.files)
}

// folderError is a file of the run that cannot be written. Going on would lose
// results.
type folderError struct{ err error }

func (e *folderError) Error() string { return "write files of run: " + e.err.Error() }
func (e *folderError) Unwrap() error { return e.err }

// guarded keeps a panic, which is a mistake in mini, to the trial it is in.
func (t *trial) guarded(ctx context.Context, log *runLog, a *verdicts.Attempt) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.say("%s", debug.Stack())
			err = fmt.Errorf("%w: %v", errDefect, p)
		}
	}()
	return t.work(ctx, log, a)
}

// errDefect is a mistake in mini.
var errDefect = errors.New("mini has a defect, please report it")

// work does what the official harness does, in its order. The error is the
// failure of everything but the patch.
func (t *trial) work(ctx context.Context, log *runLog, a *verdicts.Attempt) (err error) {
	log.say("evaluating %s in %s", t.instance.ID, t.instance.ImageName())
	sandbox, err := t.config.Sandboxes.Start(ctx, t.instance)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if failed := sandbox.Close(ctx); failed != nil {
			log.say("the sandbox is not closed: %v", failed) // its owner tells, and cleans up
		}
	}()
	if err := t.started(sandbox.Info()); err != nil {
		return err
	}
	b := box{Environment: sandbox, log: log, root: t.root}
	if err := t.root.WriteFile(t.files.Patch, t.patch); err != nil {
		return &folderError{err}
	}
	if !t.unpatched {
		done, err := t.applies(ctx, b, a)
		if err != nil || !done {
			return err
		}
	}
	return t.runs(ctx, b, a)
}

// applies brings the patch in and applies it. It is false where the patch is
// not one of this repository, which is a result.
func (t *trial) applies(ctx context.Context, b box, a *verdicts.Attempt) (bool, error) {
	if err := b.put(ctx, patchPath, t.patch); err != nil {
		return false, fmt.Errorf("bring the patch into the sandbox: %w", err)
	}
	with, output, err := b.apply(ctx)
	if err != nil {
		return false, err
	}
	if with == "" {
		b.log.say("%s:\n%s", applyFailed, output)
		a.Class, a.Reason = verdicts.ApplyFailed, "no way to apply the patch works: "+lastLine(output)
		return false, nil
	}
	a.Applied = with
	b.log.say("%s:\n%s", appliedPatch, output)
	return true, nil
}

// runs brings the script in, runs it and has its log judged.
func (t *trial) runs(ctx context.Context, b box, a *verdicts.Attempt) error {
	if err := b.diff(ctx, "before"); err != nil {
		return err
	}
	text := []byte(t.plan.script.Text)
	if err := t.root.WriteFile(t.files.Script, text); err != nil {
		return &folderError{err}
	}
	if err := b.put(ctx, scriptPath, text); err != nil {
		return fmt.Errorf("bring the script into the sandbox: %w", err)
	}
	res, err := b.evaluate(ctx, t.config.Timeout, t.files.TestOutput)
	a.LogBytes, a.LogTruncated, a.OOMKilled = res.Bytes, res.Truncated, max(res.OOMKilled, 0)
	switch {
	case err != nil:
		return err
	case res.Failure != "":
		return &env.Error{Status: env.StartFailed, Op: "run the script", Err: fmt.Errorf("%w: %s", errUnfit, res.Failure)}
	case res.TimedOut:
		a.Class, a.Reason = verdicts.TimedOut, fmt.Sprintf("the script took longer than %s", t.config.Timeout)
		b.log.say("Timeout error: %d seconds exceeded.", int64(t.config.Timeout/time.Second))
		return nil
	}
	b.log.say("the script ended with code %d after %s", res.ExitCode, res.Duration.Round(time.Millisecond))
	if err := b.diff(ctx, "after"); err != nil {
		b.log.say("%v", err) // the log of the tests is whole
	}
	return t.judge(ctx, b.log, a)
}

// fail notes a failure of everything but the patch.
func fail(a *verdicts.Attempt, err error) {
	a.Class, a.Reason = verdicts.Infrastructure, err.Error()
	a.Permanent = errors.Is(err, errUnfit) || errors.Is(err, errDefect)
	if lost, ok := errors.AsType[*env.Error](err); ok {
		a.Status, a.Hint = lost.Status, lost.Hint
		a.Permanent = a.Permanent || lost.Status == env.ImageNotFound
	}
	if errors.Is(err, env.ErrSink) {
		a.Status, a.Hint = LogUnwritable, "make room on the disk of the results, and start again"
	}
}
