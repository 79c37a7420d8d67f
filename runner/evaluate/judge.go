package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logfile"
	"github.com/minibench/mini/runner/grade/logs"
	"github.com/minibench/mini/runner/grade/suspect"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
)

// memory bounds what is held of logs at once, in bytes: most are small, and
// one that is larger than all of this is alone.
const memory = 512 << 20

// whileRead does work with the memory for files that long to itself.
func whileRead(ctx context.Context, room *semaphore.Weighted, size int64, work func() error) error {
	size = min(size, memory)
	if err := room.Acquire(ctx, size); err != nil {
		return context.Cause(ctx)
	}
	defer room.Release(size)
	return work()
}

// judge reads the log of the tests and gives the verdict.
func (t *trial) judge(ctx context.Context, log *runLog, a *verdicts.Attempt) error {
	report, err := t.plan.read(ctx, t.reading, t.root, t.files.TestOutput, a)
	if err != nil { // it is valid UTF-8 since it was written
		return err
	}
	if report == nil {
		log.say("the log cannot be judged: %s", a.Reason)
		return nil
	}
	if err := t.root.WriteFile(t.files.Report, report); err != nil {
		return &folderError{err}
	}
	log.say("the verdict is %s", a.Resolution)
	return nil
}

// read judges the log in a file, and returns what report.json is to say; nil
// where the parser crashes. The error is that of the file.
func (p plan) read(ctx context.Context, room *semaphore.Weighted, dir *rootdir.Dir, path string, a *verdicts.Attempt) (report []byte, err error) {
	f, err := openLog(dir, path)
	if err != nil {
		return nil, &folderError{err}
	}
	defer f.Close() //nolint:errcheck // only read
	err = whileRead(ctx, room, f.Size(), func() error {
		r, err := f.Reader()
		if err != nil {
			return &folderError{err}
		}
		text, err := logs.Read(r, f.Size())
		if err != nil {
			return &folderError{err}
		}
		report = p.judge(text, a)
		return nil
	})
	return report, err
}

// judge gives the verdict on a log.
func (p plan) judge(text string, a *verdicts.Attempt) []byte {
	a.Passed, a.Failed, a.ExitCode, a.Resolution, a.Flags, a.Reason, a.Hint = 0, 0, nil, "", nil, "", ""
	v, err := p.rubric.Judge(text)
	if err != nil {
		a.Class, a.Reason = verdicts.Error, err.Error()
		return nil
	}
	outcome := suspect.Outcome{Passed: v.Claims.Passed, Failed: v.Claims.Failed, AnyFailed: v.Claims.AnyFailed}
	if s := v.Report.Tests; s != nil {
		a.Passed = len(s.FailToPass.Success) + len(s.PassToPass.Success)
		a.Failed = len(s.FailToPass.Failure) + len(s.PassToPass.Failure)
	}
	if v.ExitCode != nil {
		code := int(*v.ExitCode)
		outcome.ExitCode = &code
	}
	a.ExitCode, a.Resolution = v.ExitCode, string(v.Resolution)
	a.Flags = suspect.Log(text, p.script.Text, outcome)
	switch {
	case v.Report.Resolved:
		a.Class = verdicts.Resolved
	case a.OOMKilled > 0:
		// The report stays, for it is what the official harness would say.
		a.Class = verdicts.Infrastructure
		a.Reason = fmt.Sprintf("the kernel killed processes for want of memory: %d", a.OOMKilled)
		a.Hint = "give the sandboxes of evaluations more memory, or run fewer at once"
	default:
		a.Class, a.Reason = verdicts.Unresolved, p.reason(v, *a)
	}
	return v.Report.JSON(v.InstanceID)
}

func (p plan) reason(v grade.Verdict, a verdicts.Attempt) string {
	if !v.Report.Applied {
		return "the log cannot be held against the row's tests: the test run broke off, never began, or claims what its exit code denies"
	}
	named := len(p.rubric.FailToPass) + len(p.rubric.PassToPass)
	return fmt.Sprintf("%d of %d tests failed", a.Failed, named)
}

// classify looks in the files of a run that came to no good for what failed, as
// the official summary does.
func classify(ctx context.Context, a *verdicts.Attempt, room *semaphore.Weighted, dir *rootdir.Dir, files grade.Files) error {
	a.Failure, a.Tier = "", ""
	if a.Class == verdicts.Resolved {
		return nil
	}
	var size int64
	for _, path := range []string{files.TestOutput, files.Log} {
		if info, err := dir.Lstat(path); err == nil {
			size += info.Size()
		}
	}
	return whileRead(ctx, room, size, func() error {
		var texts []string
		for _, path := range []string{files.TestOutput, files.Log} {
			text, err := readText(dir, path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return &folderError{err}
			}
			texts = append(texts, text)
		}
		f := grade.Classify(texts...)
		a.Failure, a.Tier = f.Reason, f.Tier
		return nil
	})
}

func openLog(dir *rootdir.Dir, path string) (*logfile.File, error) {
	f, err := dir.Open(path)
	if err != nil {
		return nil, err
	}
	return logfile.New(f, logfile.Most)
}

// readText reads a file of the run without a second copy of it.
func readText(dir *rootdir.Dir, path string) (string, error) {
	f, err := openLog(dir, path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	r, err := f.Reader()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(int(f.Size()))
	_, err = io.Copy(&text, r)
	return text.String(), err
}

// maxReason bounds what is quoted of an output in a reason, in bytes.
const maxReason = 300

// lastLine is the end of an output, for a reason.
func lastLine(output string) string {
	output = strings.TrimSpace(output)
	line := output[strings.LastIndexByte(output, '\n')+1:]
	return strings.ToValidUTF8(line[:min(len(line), maxReason)], "\ufffd")
}
