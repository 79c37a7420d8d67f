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
	Bytes   int64 // size of the decompressed log; 0 if it was not read
	Verdict grade.Verdict
	// Err is the reason for a missing verdict: the log is unreadable, or its
	// parser crashed.
	Err error
}

// Grader grades logs in parallel. The zero value is ready to use.
type Grader struct {
	Workers    int   // logs graded in parallel; 0: one for each CPU
	MaxMemory  int64 // bytes of logs in memory; 0: 192 MiB. A larger log is read alone.
	MaxLogSize int64 // maximum bytes of one log; 0: logfile.MaxSize
}

// defaultMemory is the default of Grader.MaxMemory, in bytes.
const defaultMemory = 192 << 20

// queuedPerWorker is the number of results for each worker that may wait for an
// earlier result.
const queuedPerWorker = 64

// Grade grades the log of each folder and yields the results in order. rubrics
// has the TestSpec of every instance. If ctx ends, Grade stops early, and the
// last results have its error.
func (g Grader) Grade(ctx context.Context, folders []Folder, rubrics map[string]grade.TestSpec) iter.Seq[Result] {
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
		var all errgroup.Group
		defer func() {
			cancel()
			_ = all.Wait() // the functions never fail
		}()
		sem := semaphore.NewWeighted(g.MaxMemory)
		queue := make(chan chan Result, queuedPerWorker*g.Workers)
		all.Go(func() error {
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
					slot <- g.gradeOne(ctx, f, rubrics[f.InstanceID], sem)
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
func (g Grader) gradeOne(ctx context.Context, f Folder, rubric grade.TestSpec, sem *semaphore.Weighted) Result {
	r := Result{Folder: f}
	patched, err := hasPatch(f.Path)
	switch {
	case err != nil:
		r.Err = err
	case !patched:
		r.Verdict = rubric.GradeEmptyPatch()
	default:
		r.Err = g.readLog(ctx, filepath.Join(f.Path, f.logName), sem, func(text string) (err error) {
			r.Bytes = int64(len(text))
			r.Verdict, err = rubric.Grade(text)
			return err
		})
	}
	return r
}

// hasPatch reports whether the evaluation had a patch: an empty patch.diff
// means none. If the file is missing there was a patch, because there is a log.
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

// readLog calls use with a log when enough memory is available.
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
