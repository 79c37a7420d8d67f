package savedlogs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/internal/logfile"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
)

// Result is the result of grading one log.
type Result struct {
	Folder
	Bytes   int64 // size of the log, decompressed and with universal newlines; 0 if it was not read
	Verdict grade.Verdict
	// Err is set if there is no verdict: the log cannot be read, or its parser
	// crashed.
	Err error
}

// Grader grades logs in parallel. The zero value is ready to use.
type Grader struct {
	Workers    int   // number of logs graded in parallel; 0: one for each CPU
	MaxMemory  int64 // bytes of logs in memory; 0: 192 MiB. A larger log is graded alone.
	MaxLogSize int64 // maximum size of one log, in bytes; 0: logfile.MaxSize
}

// defaultMemory is the default of Grader.MaxMemory, in bytes.
const defaultMemory = 192 << 20

// queuedPerWorker is the number of results per worker that may wait until earlier
// results have been yielded.
const queuedPerWorker = 64

// Grade grades the log of each folder and yields the results in order. specs has
// the TestSpec of every instance. If ctx ends, Grade stops early; the error of ctx
// is in the last results.
func (g Grader) Grade(ctx context.Context, folders []Folder, specs map[string]grade.TestSpec) iter.Seq[Result] {
	if g.Workers <= 0 {
		g.Workers = runtime.GOMAXPROCS(0)
	}
	if g.MaxMemory <= 0 {
		g.MaxMemory = defaultMemory
	}
	if g.MaxLogSize <= 0 {
		g.MaxLogSize = logfile.MaxSize
	}
	return func(yield func(Result) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var dispatcher errgroup.Group
		defer func() {
			cancel()
			_ = dispatcher.Wait() // the functions never fail
		}()
		sem := semaphore.NewWeighted(g.MaxMemory)
		queue := make(chan chan Result, queuedPerWorker*g.Workers)
		dispatcher.Go(func() error {
			defer close(queue)
			var workers errgroup.Group
			workers.SetLimit(g.Workers)
			for _, f := range folders {
				slot := make(chan Result, 1)
				select {
				case queue <- slot:
				case <-ctx.Done():
					return workers.Wait()
				}
				workers.Go(func() error {
					slot <- g.gradeOne(ctx, f, specs[f.InstanceID], sem)
					return nil
				})
			}
			return workers.Wait()
		})
		for slot := range queue {
			if !yield(<-slot) {
				return
			}
		}
	}
}

// gradeOne grades the log of one folder.
func (g Grader) gradeOne(ctx context.Context, f Folder, spec grade.TestSpec, sem *semaphore.Weighted) Result {
	result := Result{Folder: f}
	patched, err := hasPatch(f.Path)
	switch {
	case err != nil:
		result.Err = err
	case !patched:
		result.Verdict = spec.GradeEmptyPatch()
	default:
		result.Err = g.readLog(ctx, filepath.Join(f.Path, f.logName), sem, func(text string) (err error) {
			result.Bytes = int64(len(text))
			result.Verdict, err = spec.Grade(text)
			return err
		})
	}
	return result
}

// hasPatch reports whether an evaluation with a log had a patch. An empty patch.diff
// means that it had none. A missing one does not, because there is a log.
func hasPatch(dir string) (bool, error) {
	info, err := os.Stat(filepath.Join(dir, patchName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("check patch: %w", err)
	}
	return info.Size() > 0, nil
}

// readLog waits until enough memory is available, reads a log and calls use.
func (g Grader) readLog(ctx context.Context, path string, sem *semaphore.Weighted, use func(text string) error) error {
	l, err := logfile.Open(path, g.MaxLogSize)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // read only
	weight := min(l.Size(), g.MaxMemory)
	if err := sem.Acquire(ctx, weight); err != nil {
		return context.Cause(ctx)
	}
	defer sem.Release(weight)
	r, err := l.Reader()
	if err != nil {
		return err
	}
	text, err := logs.DecodeReader(r, l.Size())
	if errors.Is(err, logs.ErrNotUTF8) {
		return fmt.Errorf("read %s: %w", path, err) // other errors contain the path
	}
	if err != nil {
		return err
	}
	return use(text)
}
