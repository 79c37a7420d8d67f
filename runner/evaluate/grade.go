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

// maxLogMemory limits the memory for the logs of all workers, in bytes. A log of
// this size or more is processed alone.
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

// gradeLog grades the log of the tests, adds the verdict to the result and writes
// report.json unless the parser crashes.
func (t *testRun) gradeLog(ctx context.Context) error {
	report, err := t.plan.gradeFile(ctx, t.logMemory, t.root, t.files.TestOutput, &t.result)
	if err != nil { // a read error: runScript writes only valid UTF-8
		return err
	}
	if report == nil {
		t.log.logf("grade the log: %s", t.result.Reason)
		return nil
	}
	if err := t.root.WriteFile(t.files.Report, report); err != nil {
		return &folderError{err}
	}
	t.log.logf("verdict: %s", t.result.Resolution)
	return nil
}

// gradeFile grades the log in a file, adds the verdict to result and returns the
// contents of report.json, or nil if the parser crashes. It returns an error if
// the file cannot be read or ctx is done.
func (p plan) gradeFile(
	ctx context.Context, sem *semaphore.Weighted, dir *rootdir.Dir, path string, result *verdicts.TestRun,
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
		report = p.grade(text, result)
		return nil
	})
	return report, err
}

// grade grades a log, adds the verdict to result and returns the contents of
// report.json, or nil if the parser crashes.
func (p plan) grade(text string, result *verdicts.TestRun) []byte {
	result.Passed, result.Failed, result.ExitCode, result.Resolution, result.Flags, result.Reason, result.Hint = 0, 0, nil, "", nil, "", ""
	v, err := p.spec.Grade(text)
	if err != nil {
		result.Class, result.Reason = verdicts.Error, err.Error()
		return nil
	}
	counts := v.LogCounts
	logResult := tampering.LogResult{
		Passed: counts.Passed, Failed: counts.Failed, AnyFailed: counts.AnyFailed, Listed: counts.Listed, Overwritten: counts.Overwritten,
	}
	if s := v.Report.Tests; s != nil {
		result.Passed = len(s.FailToPass.Success) + len(s.PassToPass.Success)
		result.Failed = len(s.FailToPass.Failure) + len(s.PassToPass.Failure)
	}
	if v.ExitCode != nil {
		code := int(*v.ExitCode)
		logResult.ExitCode = &code
	}
	result.ExitCode, result.Resolution = v.ExitCode, string(v.Resolution)
	result.Flags = tampering.CheckLog(text, p.script.Text, logResult)
	switch {
	case v.Report.Resolved:
		result.Class = verdicts.Resolved
	case result.OOMKilled > 0:
		// The official harness would write the report too.
		result.Class = verdicts.Infrastructure
		result.Reason = fmt.Sprintf("out of memory: the kernel killed %d processes", result.OOMKilled)
		result.Hint = "raise the memory limit of evaluation sandboxes, or use fewer workers"
	default:
		result.Class = verdicts.Unresolved
		result.Reason = fmt.Sprintf("%d of %d tests failed", result.Failed, len(p.spec.FailToPass)+len(p.spec.PassToPass))
		if !v.Report.Applied {
			result.Reason = "the log has no usable test results: the tests did not start or finish, or the exit code contradicts them"
		}
	}
	return v.Report.JSON(v.InstanceID)
}

// classifyFailure sets FailureReason and FailureTier of result. As the official
// summary does, it looks for infrastructure problems in the files of a run that
// is not resolved.
func classifyFailure(
	ctx context.Context, result *verdicts.TestRun, sem *semaphore.Weighted, dir *rootdir.Dir, files grade.Files,
) error {
	result.FailureReason, result.FailureTier = "", ""
	if result.Class == verdicts.Resolved {
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
		result.FailureReason, result.FailureTier = f.Reason, f.Tier
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

// readText reads a file into a string. It allocates the memory only once, because
// logs can be large.
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

// maxReason is the maximum length of the output that a reason quotes, in bytes.
const maxReason = 300

// lastLine returns the last line of an output that is not blank, cut after
// maxReason bytes, with invalid UTF-8 replaced.
func lastLine(output string) string {
	output = strings.TrimSpace(output)
	line := output[strings.LastIndexByte(output, '\n')+1:]
	return strings.ToValidUTF8(line[:min(len(line), maxReason)], "\ufffd")
}
