package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/internal/logfile"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
)

// maxLogMemory bounds the memory for logs, in bytes. Most logs are small; a
// larger log is processed alone.
const maxLogMemory = 512 << 20

// withLogMemory calls work after it has reserved memory for size bytes of logs.
func withLogMemory(ctx context.Context, sem *semaphore.Weighted, size int64, work func() error) error {
	size = min(size, maxLogMemory)
	if err := sem.Acquire(ctx, size); err != nil {
		return context.Cause(ctx)
	}
	defer sem.Release(size)
	return work()
}

// gradeLog grades the log of the tests and writes report.json.
func (t *testRun) gradeLog(ctx context.Context, log *runLog, a *verdicts.TestRun) error {
	report, err := t.plan.gradeFile(ctx, t.logMemory, t.root, t.files.TestOutput, a)
	if err != nil { // never invalid UTF-8: runScript wrote valid text
		return err
	}
	if report == nil {
		log.logf("grade the log: %s", a.Reason)
		return nil
	}
	if err := t.root.WriteFile(t.files.Report, report); err != nil {
		return &folderError{err}
	}
	log.logf("verdict: %s", a.Resolution)
	return nil
}

// gradeFile grades the log in a file and returns the contents of report.json,
// or nil if the parser crashes. The error concerns the file.
func (p plan) gradeFile(
	ctx context.Context, sem *semaphore.Weighted, dir *rootdir.Dir, path string, a *verdicts.TestRun,
) (report []byte, err error) {
	f, err := openLog(dir, path)
	if err != nil {
		return nil, &folderError{err}
	}
	defer f.Close() //nolint:errcheck // only read
	err = withLogMemory(ctx, sem, f.Size(), func() error {
		r, err := f.Reader()
		if err != nil {
			return &folderError{err}
		}
		text, err := logs.DecodeReader(r, f.Size())
		if err != nil {
			return &folderError{err}
		}
		report = p.grade(text, a)
		return nil
	})
	return report, err
}

// grade grades a log, fills in the attempt and returns the contents of
// report.json.
func (p plan) grade(text string, a *verdicts.TestRun) []byte {
	a.Passed, a.Failed, a.ExitCode, a.Resolution, a.Flags, a.Reason, a.Hint = 0, 0, nil, "", nil, "", ""
	v, err := p.rubric.Grade(text)
	if err != nil {
		a.Class, a.Reason = verdicts.Error, err.Error()
		return nil
	}
	outcome := tampering.LogResult{Passed: v.LogCounts.Passed, Failed: v.LogCounts.Failed, AnyFailed: v.LogCounts.AnyFailed}
	if s := v.Report.Tests; s != nil {
		a.Passed = len(s.FailToPass.Success) + len(s.PassToPass.Success)
		a.Failed = len(s.FailToPass.Failure) + len(s.PassToPass.Failure)
	}
	if v.ExitCode != nil {
		code := int(*v.ExitCode)
		outcome.ExitCode = &code
	}
	a.ExitCode, a.Resolution = v.ExitCode, string(v.Resolution)
	a.Flags = tampering.CheckLog(text, p.script.Text, outcome)
	switch {
	case v.Report.Resolved:
		a.Class = verdicts.Resolved
	case a.OOMKilled > 0:
		// Keep the report: the official harness would write it.
		a.Class = verdicts.Infrastructure
		a.Reason = fmt.Sprintf("out of memory: the kernel killed %d processes", a.OOMKilled)
		a.Hint = "raise the memory limit of evaluation sandboxes, or use fewer workers"
	default:
		a.Class, a.Reason = verdicts.Unresolved, p.unresolvedReason(v, *a)
	}
	return v.Report.JSON(v.InstanceID)
}

// unresolvedReason explains the class unresolved.
func (p plan) unresolvedReason(v grade.Verdict, a verdicts.TestRun) string {
	if !v.Report.Applied {
		return "the log has no usable test results: the tests did not start or finish, or the exit code contradicts them"
	}
	named := len(p.rubric.FailToPass) + len(p.rubric.PassToPass)
	return fmt.Sprintf("%d of %d tests failed", a.Failed, named)
}

// classifyFailure looks for infrastructure problems in the files of a run that
// is not resolved, as the official summary does.
func classifyFailure(
	ctx context.Context, a *verdicts.TestRun, sem *semaphore.Weighted, dir *rootdir.Dir, files grade.Files,
) error {
	a.FailureReason, a.FailureTier = "", ""
	if a.Class == verdicts.Resolved {
		return nil
	}
	var size int64
	for _, path := range []string{files.TestOutput, files.Log} {
		if info, err := dir.Lstat(path); err == nil {
			size += info.Size()
		}
	}
	return withLogMemory(ctx, sem, size, func() error {
		var texts []string
		for _, path := range []string{files.TestOutput, files.Log} {
			text, err := readText(dir, path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return &folderError{err}
			}
			texts = append(texts, text)
		}
		f := grade.ClassifyFailure(texts...)
		a.FailureReason, a.FailureTier = f.Reason, f.Tier
		return nil
	})
}

func openLog(dir *rootdir.Dir, path string) (*logfile.File, error) {
	f, err := dir.Open(path)
	if err != nil {
		return nil, err
	}
	return logfile.New(f, logfile.MaxSize)
}

// readText reads a file of the run without copying it in memory.
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

// maxReason is the maximum length of quoted output in a reason, in bytes.
const maxReason = 300

// lastLine returns the last line of an output, for a reason.
func lastLine(output string) string {
	output = strings.TrimSpace(output)
	line := output[strings.LastIndexByte(output, '\n')+1:]
	return strings.ToValidUTF8(line[:min(len(line), maxReason)], "\ufffd")
}
