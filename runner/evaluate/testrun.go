package evaluate

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
	"github.com/minibench/mini/runner/verdicts"
)

// Paths in the sandbox, as in the official harness.
const (
	repoDir    = "/testbed"
	patchPath  = "/tmp/patch.diff"
	scriptPath = "/eval.sh"
)

// commandTimeout limits every command except the evaluation script.
const commandTimeout = 10 * time.Minute

// commandOutputLimit is the maximum stored output of a command that applies the patch, in bytes.
const commandOutputLimit = 1 << 20

// applyCommand is a command that applies or checks the patch. It runs program
// without a shell, with the patch file as the last argument.
type applyCommand struct {
	program []string
	name    string
	isCheck bool // the repository already contains the changes of the patch, and counts as patched
}

// applyCommands are the commands that applyPatch tries in order until one exits
// with 0.
var applyCommands = []applyCommand{
	{program: []string{"git", "apply", "--verbose"}, name: "git apply --verbose"},
	{program: []string{"git", "apply", "--verbose", "--3way"}, name: "git apply --verbose --3way"},
	{program: []string{"git", "apply", "--verbose", "--reject"}, name: "git apply --verbose --reject"},
	{program: []string{"patch", "--batch", "--forward", "--fuzz=5", "-p1", "-i"}, name: "patch --batch --forward --fuzz=5 -p1 -i"},
	{program: []string{"git", "apply", "--check", "--reverse"}, name: "git apply --check --reverse", isCheck: true},
}

// resetCommand discards the changes that a failed command made. It also deletes
// untracked files of the image, as the official harness does.
const resetCommand = "git checkout -- . ; git clean -fd"

// errUnusableImage reports an image in which git or the evaluation script
// cannot be started.
var errUnusableImage = errors.New("the image cannot be used for evaluations")

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

	log     *runLog
	sandbox env.Environment
	result  verdicts.TestRun
}

// run makes the test run and sets result. It returns an error if the run folder is not
// writable, ctx is cancelled or onStart fails; other failures are in the result.
func (t *testRun) run(ctx context.Context) (err error) {
	t.result = verdicts.TestRun{Start: time.Now()}
	defer func() { t.result.Seconds = time.Since(t.result.Start).Seconds() }()
	if err := t.root.RemoveAll(t.files.Dir); err != nil { // files of a killed run
		return fmt.Errorf("clear %s: %w", t.files.Dir, err)
	}
	if err := t.root.MkdirAll(t.files.Dir); err != nil {
		return fmt.Errorf("create folder of run: %w", err)
	}
	if t.log, err = newRunLog(t.root, t.files.Log); err != nil {
		return fmt.Errorf("write log of run: %w", err)
	}
	runErr := t.runInSandbox(ctx)
	stop := errors.Is(runErr, errVerdictFound) || errors.As(runErr, new(*folderError))
	switch {
	case ctx.Err() != nil:
		runErr, stop = context.Cause(ctx), true
	case runErr != nil && !stop:
		t.setFailure(runErr)
		t.log.logf("the evaluation failed: %v", runErr)
	}
	if err := t.log.Close(); err != nil && !stop {
		return fmt.Errorf("write log of run: %w", err)
	}
	if stop {
		return runErr
	}
	return classifyFailure(ctx, &t.result, t.logMemory, t.root, t.files)
}

// folderError reports a file of the run folder that cannot be written or read.
// It stops the evaluation, because further results would be lost.
type folderError struct{ err error }

func (e *folderError) Error() string { return "write files of run: " + e.err.Error() }
func (e *folderError) Unwrap() error { return e.err }

// errBug reports a panic.
var errBug = errors.New("internal error in mini, please report it")

// runInSandbox performs the steps of the official harness in the same order. Its
// errors are infrastructure failures, except *folderError and errors of onStart. It
// converts a panic to an error, so that a bug affects one run only.
func (t *testRun) runInSandbox(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log.logf("%s", debug.Stack())
			err = fmt.Errorf("%w: %v", errBug, p)
		}
	}()
	t.log.logf("evaluating %s in %s", t.instance.ID, t.instance.ImageName())
	if t.sandbox, err = t.config.Sandboxes.Start(ctx, t.instance); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if closeErr := t.sandbox.Close(ctx); closeErr != nil {
			t.log.logf("close the sandbox: %v", closeErr) // Sandboxes reports it and cleans up
		}
	}()
	if err := t.onStart(t.sandbox.Info()); err != nil {
		return err
	}
	if err := t.root.WriteFile(t.files.Patch, t.patch); err != nil {
		return &folderError{err}
	}
	if !t.unpatched {
		applied, err := t.applyPatch(ctx)
		if err != nil || !applied {
			return err
		}
	}
	return t.runScript(ctx)
}

// applyPatch copies the patch into the sandbox and applies it with the first of
// applyCommands that works. It returns false and sets the class of result if none does.
func (t *testRun) applyPatch(ctx context.Context) (applied bool, err error) {
	if err := t.putFile(ctx, patchPath, t.patch); err != nil {
		return false, fmt.Errorf("copy the patch into the sandbox: %w", err)
	}
	output := ""
	for i, command := range applyCommands {
		if i > 0 && !command.isCheck {
			c := env.Command{Interpreter: []string{"/bin/bash", "-c"}, Script: resetCommand, Dir: repoDir}
			if _, err := t.execute(ctx, c); err != nil {
				return false, err
			}
		}
		res, err := t.execute(ctx, env.Command{Interpreter: command.program, Script: patchPath, Dir: repoDir})
		switch {
		case err != nil:
			return false, err
		case i == 0 && res.Failure != "":
			return false, &env.Error{
				Status: env.StartFailed, Op: "apply the patch", Hint: "use an image with git and a repository in " + repoDir,
				Err: fmt.Errorf("%w: %s", errUnusableImage, res.Failure),
			}
		case res.Failure == "" && res.ExitCode == 0:
			t.result.AppliedWith = command.name
			t.log.logf("%s:\n%s", appliedPatch, res.Output)
			return true, nil
		case !command.isCheck:
			output = cmp.Or(res.Failure, string(res.Output))
			t.log.logf("patch command failed: %s", command.name)
		}
	}
	t.log.logf("%s:\n%s", applyFailed, output)
	t.result.Class, t.result.Reason = verdicts.ApplyFailed, "the patch does not apply: "+lastLine(output)
	return false, nil
}

// runScript copies the evaluation script into the sandbox, runs it and grades
// its log.
func (t *testRun) runScript(ctx context.Context) error {
	if err := t.logDiff(ctx, "before"); err != nil {
		return err
	}
	text := []byte(t.plan.script.Text)
	if err := t.root.WriteFile(t.files.Script, text); err != nil {
		return &folderError{err}
	}
	if err := t.putFile(ctx, scriptPath, text); err != nil {
		return fmt.Errorf("copy the script into the sandbox: %w", err)
	}
	res, err := t.executeScript(ctx)
	t.result.LogBytes, t.result.LogTruncated, t.result.OOMKilled = res.Bytes, res.Truncated, max(res.OOMKilled, 0)
	switch {
	case err != nil:
		return err
	case res.Failure != "":
		err := fmt.Errorf("%w: %s", errUnusableImage, res.Failure)
		return &env.Error{Status: env.StartFailed, Op: "run the script", Err: err}
	case res.TimedOut:
		t.result.Class = verdicts.TimedOut
		t.result.Reason = fmt.Sprintf("the evaluation script exceeded its timeout of %s", t.config.Timeout)
		t.log.logf("Timeout error: %d seconds exceeded.", int64(t.config.Timeout/time.Second))
		return nil
	}
	t.log.logf("the script exited with code %d after %s", res.ExitCode, res.Duration.Round(time.Millisecond))
	if err := t.logDiff(ctx, "after"); err != nil {
		t.log.logf("%v", err) // the run succeeds: the log of the tests is complete
	}
	return t.gradeLog(ctx)
}

// executeScript runs the evaluation script and writes its output to the log of the
// tests. The error is an infrastructure failure; it wraps env.ErrSink if that file
// cannot be written.
func (t *testRun) executeScript(ctx context.Context) (res env.Result, err error) {
	f, err := t.root.OpenFile(t.files.TestOutput, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return res, fmt.Errorf("%w: %w", env.ErrSink, err)
	}
	defer func() {
		if werr := f.Close(); werr != nil && err == nil {
			err = fmt.Errorf("%w: %w", env.ErrSink, werr)
		}
	}()
	text := &utf8Writer{w: f}
	res, err = t.sandbox.Execute(ctx, env.Command{
		Interpreter: []string{"/bin/bash"}, Script: scriptPath, Timeout: t.config.Timeout, Sink: text, OutputLimit: logLimit,
	})
	if errors.Is(err, env.ErrSink) {
		return res, err // the sink may still be in use
	}
	werr := text.Flush()
	if res.TimedOut && werr == nil {
		_, werr = fmt.Fprintf(f, "\n\nTimeout error: %d seconds exceeded.", int64(t.config.Timeout/time.Second))
	}
	if werr != nil && err == nil {
		err = fmt.Errorf("%w: %w", env.ErrSink, werr)
	}
	return res, err
}

// putFile writes a file into the sandbox.
func (t *testRun) putFile(ctx context.Context, name string, data []byte) error {
	files, ok := env.AsFiles(t.sandbox)
	if !ok {
		return errors.New("copy files into the sandbox: not supported by this environment")
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: path.Base(name), Mode: 0o644, Size: int64(len(data)), ModTime: time.Now(),
		Format: tar.FormatPAX,
	})
	if err == nil {
		_, err = w.Write(data)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return files.Put(ctx, path.Dir(name), &archive)
}

// logDiff writes the output of git diff to the log. It ignores the exit code and a timeout.
func (t *testRun) logDiff(ctx context.Context, when string) error {
	t.log.logf("Git diff %s:", when)
	_, err := t.sandbox.Execute(ctx, env.Command{
		Interpreter: []string{"git", "-c", "core.fileMode=false"}, Script: "diff", Dir: repoDir,
		Sink: &utf8Writer{w: t.log}, OutputLimit: 16 << 20, Timeout: commandTimeout,
	})
	t.log.logf("End of git diff %s", when)
	return err
}

// execute runs a short command. A timeout is an infrastructure failure.
func (t *testRun) execute(ctx context.Context, c env.Command) (env.Result, error) {
	c.Timeout, c.OutputLimit = commandTimeout, commandOutputLimit
	res, err := t.sandbox.Execute(ctx, c)
	if err == nil && res.TimedOut {
		err = fmt.Errorf("run %.80s: timeout after %s", c.Script, commandTimeout)
	}
	return res, err
}

// setFailure records an infrastructure failure.
func (t *testRun) setFailure(err error) {
	result := &t.result
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

// runLog writes run_instance.log, which lists the steps in the sandbox and their
// results.
type runLog struct {
	file *os.File
	err  error // the first failed write
}

// Messages that other tools search for in run_instance.log.
const (
	appliedPatch = ">>>>> Applied Patch"
	applyFailed  = ">>>>> Patch Apply Failed"
)

func newRunLog(dir *rootdir.Dir, path string) (*runLog, error) {
	f, err := dir.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	return &runLog{file: f}, nil
}

// logf writes a message, which may have several lines.
func (l *runLog) logf(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	_, _ = fmt.Fprintf(l, "%s - INFO - %s\n", time.Now().Format(time.DateTime), strings.ToValidUTF8(text, "\ufffd"))
}

// Write adds raw output. It never returns an error; Close returns the first one,
// so that a full disk is reported once.
func (l *runLog) Write(p []byte) (int, error) {
	if l.err == nil {
		_, l.err = l.file.Write(p)
	}
	return len(p), nil
}

// Close closes the file and returns the first error of a write or of closing.
func (l *runLog) Close() error {
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}

// utf8Writer writes text to w and replaces invalid UTF-8 with U+FFFD, as the
// official harness does (see logs.ToValidUTF8). It accepts characters that are
// split between writes.
type utf8Writer struct {
	w       io.Writer
	pending []byte // start of an incomplete character, at most three bytes
}

func (u *utf8Writer) Write(p []byte) (int, error) {
	text := append(u.pending, p...)
	complete := len(text) - incompleteSuffix(text)
	if _, err := u.w.Write(logs.ToValidUTF8(text[:complete])); err != nil {
		return 0, err
	}
	u.pending = append([]byte(nil), text[complete:]...)
	return len(p), nil
}

// Flush writes U+FFFD if the text ends with an incomplete character.
func (u *utf8Writer) Flush() error {
	rest := u.pending
	u.pending = nil
	if len(rest) == 0 {
		return nil
	}
	_, err := u.w.Write(logs.ToValidUTF8(rest))
	return err
}

// incompleteSuffix returns the length of an incomplete character at the end of
// text.
func incompleteSuffix(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}
