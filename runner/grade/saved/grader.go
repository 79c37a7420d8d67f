package saved

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logfile"
	"github.com/minibench/mini/runner/grade/logs"
)

// Result is what came of one log.
type Result struct {
	Folder
	Bytes   int64 // of the log, unpacked; 0 where it was not read
	Verdict grade.Verdict
	// Err says why there is no verdict: the log cannot be read, or its parser
	// crashed.
	Err error
}

// Grader reads logs side by side. The zero value is ready.
type Grader struct {
	Workers int   // logs at a time; 0: one for each CPU
	Memory  int64 // bytes of logs at a time; 0: 192 MiB. A longer log is read alone.
	MostLog int64 // bytes of one log; 0: logfile.Most
}

// defaultMemory lets a log of 200 MB be read alone, and many small ones
// together.
const defaultMemory = 192 << 20

// largeLog is from which size on memory is given back at once: the next
// log may be as large.
const largeLog = 16 << 20

// ahead is how many results may wait for an earlier one, for each worker.
const ahead = 64

// Grade gives a verdict on each folder, in their order. The folders' instances
// are all in rubrics. It ends early when ctx does; then the last results say
// so.
func (g Grader) Grade(ctx context.Context, folders []Folder, rubrics map[string]grade.Rubric) iter.Seq[Result] {
	if g.Workers <= 0 {
		g.Workers = runtime.GOMAXPROCS(0)
	}
	if g.Memory <= 0 {
		g.Memory = defaultMemory
	}
	if g.MostLog <= 0 {
		g.MostLog = logfile.Most
	}
	return func(yield func(Result) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var all errgroup.Group
		defer func() {
			cancel()
			_ = all.Wait() // its functions return no errors
		}()
		room := semaphore.NewWeighted(g.Memory)
		queue := make(chan chan Result, ahead*g.Workers)
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
					slot <- g.one(ctx, f, rubrics[f.InstanceID], room)
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

// one gives a verdict on one folder.
func (g Grader) one(ctx context.Context, f Folder, rubric grade.Rubric, room *semaphore.Weighted) Result {
	r := Result{Folder: f}
	patched, err := hasPatch(f.Path)
	switch {
	case err != nil:
		r.Err = err
	case !patched:
		r.Verdict = rubric.Unpatched()
	default:
		r.Err = g.read(ctx, filepath.Join(f.Path, f.log), room, func(text string) (err error) {
			r.Bytes = int64(len(text))
			r.Verdict, err = rubric.Judge(text)
			return err
		})
	}
	return r
}

// hasPatch says whether there was a patch: an empty patch.diff stands for none.
// Without the file there was one, or there would be no log.
func hasPatch(dir string) (bool, error) {
	info, err := os.Stat(filepath.Join(dir, patchName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look for the patch: %w", err)
	}
	return info.Size() > 0, nil
}

// read calls use with a log, once there is room for it.
func (g Grader) read(ctx context.Context, path string, room *semaphore.Weighted, use func(text string) error) error {
	l, err := logfile.Open(path, g.MostLog)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // read only
	for {
		size := l.Size()
		err := g.within(ctx, room, size, func() error {
			r, err := l.Reader()
			if err != nil {
				return err
			}
			text, err := logs.Read(r, size)
			if errors.Is(err, logs.ErrNotUTF8) {
				return fmt.Errorf("read %s: %w", path, err) // the file's own errors name it
			}
			if err != nil {
				return err
			}
			return use(text)
		})
		if !errors.Is(err, logfile.ErrSize) { // else it is larger than it claims, and needs more room
			return err
		}
	}
}

// within runs f when there is room for so many bytes.
func (g Grader) within(ctx context.Context, room *semaphore.Weighted, size int64, f func() error) error {
	weight := min(size, g.Memory)
	if err := room.Acquire(ctx, weight); err != nil {
		return context.Cause(ctx)
	}
	defer room.Release(weight)
	if size >= largeLog {
		defer debug.FreeOSMemory()
	}
	return f()
}
