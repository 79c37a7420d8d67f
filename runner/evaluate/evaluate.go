package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// logLimit is the maximum size of a stored log, in bytes. A longer log is stored
// without its middle.
const logLimit = 256 << 20

// Defaults of Config.
const (
	DefaultTimeout = 1800 * time.Second // the official one
	DefaultMaxRuns = 3
)

// Sandboxes starts a fresh sandbox for an evaluation. The sandbox runs the
// instance's image with root privileges and implements env.Files. Do not use the
// Sandboxes of an agent's run, whose settings differ.
type Sandboxes interface {
	Start(ctx context.Context, in datasets.Instance) (env.Environment, error)
}

// ImageIdentifier is implemented by Sandboxes that can identify the image of an
// instance without starting a sandbox. An Evaluator then looks up the verdict
// first, and starts no sandbox if it finds one.
type ImageIdentifier interface {
	// Identify returns the image that Start would use now, or an empty Image if
	// that is unknown, for example because the image must be pulled first.
	Identify(ctx context.Context, in datasets.Instance) (Image, error)
}

// Image is the identity of an image.
type Image struct {
	ID     string
	Digest string // in the registry; may be empty
	Arch   string // GOARCH value
}

// Config configures an Evaluator. Folder, Log, Sandboxes and RunID are
// required.
type Config struct {
	// Folder is the run folder. The caller holds its lock, so that no other
	// process evaluates in it; runner.Open fails with a *runner.LockedError if
	// another process has the lock.
	Folder *runner.Folder
	// Log receives the events EvaluationStarted, EvaluationAttempt, Verdict and
	// EvaluationFinished.
	Log       *runner.EventLog
	Sandboxes Sandboxes
	// RunID names the evaluation in the official log tree.
	RunID string
	// Workers is the number of patches evaluated in parallel. Zero means half the
	// number of processors, at least one; with more workers, tests compete for
	// processors and may exceed timeouts.
	Workers int
	// Slots limits the patches that several evaluators together evaluate in
	// parallel; nil means that there is only this evaluator.
	Slots *semaphore.Weighted
	// Timeout limits the whole evaluation script; zero means DefaultTimeout.
	Timeout time.Duration
	// MaxRuns limits the number of runs of a patch; zero means DefaultMaxRuns.
	// Only a run with an infrastructure failure is repeated.
	MaxRuns int
	// MaxDisruptions is the number of runs of a patch that may end with
	// env.SandboxDisrupted without counting towards MaxRuns.
	MaxDisruptions int
	// RerunFailed is the maximum number of reruns of a failed patch (see
	// verdicts.Class.IsFailure), counting those of earlier evaluations in this
	// folder. The first different result makes the verdict unstable and ends
	// the reruns.
	RerunFailed int
	// Cache is a folder of verdicts that several runs share. If it is empty,
	// only verdicts in Folder are reused.
	Cache string
	// SigningKey is the user's secret key, which signs the records in Folder. The
	// evaluator does not reuse a record without that signature, because another
	// user may have made it; it runs the tests again. With an empty key it
	// reuses no record of an earlier session.
	SigningKey []byte
	// TrustLogs grades the saved log of a record that is not signed with
	// SigningKey instead of running the tests. The new record has ForeignLog set.
	TrustLogs bool
	// Selected are the instance ids that the official summary covers; nil means
	// the submitted ones.
	Selected []string
	// Editions identifies the datasets in the records.
	Editions []datasets.SourceInfo
	// Network and Profile describe the sandboxes. A verdict is reused only if
	// they are the same.
	Network, Profile string
	// Engine is the name of the container engine in the records.
	Engine      string
	MiniVersion string
}

// withDefaults returns the configuration with defaults for unset fields.
func (c Config) withDefaults() Config {
	c.Workers = cmp.Or(c.Workers, max(1, runtime.NumCPU()/2))
	if c.Slots == nil {
		c.Slots = semaphore.NewWeighted(int64(c.Workers))
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.MaxRuns = cmp.Or(c.MaxRuns, DefaultMaxRuns)
	return c
}

// Evaluator evaluates the submitted patches. Its methods are safe for
// concurrent use.
type Evaluator struct {
	config        Config
	layouts       map[string]grade.Layout // by run id; each repetition has its own
	store         *store
	started       time.Time
	cancel        context.CancelCauseFunc
	workers       errgroup.Group
	stopAfterFunc func() bool
	locks         sync.Map            // name -> *sync.Mutex; see lock
	logMemory     *semaphore.Weighted // limits the memory for logs

	mu               sync.Mutex
	queueChanged     *sync.Cond // signals changes of queue and closed
	queue            []*job
	closed           bool
	jobs             map[string]*job      // by path of the record
	pathOwners       map[string]pathOwner // by lower-case path of the record
	order            []string             // paths of the records, in the order of submission
	summariesWritten time.Time            // last write of the summaries
	cacheWarning     sync.Once            // emits the warning about an unwritable cache
}

// job is a submitted task and its state.
type job struct {
	Task
	plan     plan
	layout   grade.Layout
	paths    paths
	record   *verdicts.Record // nil until there is a verdict
	reused   bool
	ranTests bool // whether this session ran the tests
	// trusted reports whether the verdict comes from a run of this session or
	// from the cache. Other verdicts of the folder have an unknown origin and
	// are not added to the cache.
	trusted bool
}

// ErrClosed is returned by Submit after Wait was called.
var ErrClosed = errors.New("submit patch: the evaluation is closed")

// Start reads the earlier verdicts of the folder and starts the workers. Call
// Wait to end them. Cancelling ctx aborts the current runs, which leave no
// record; the next evaluation repeats them. Start returns an error if the folder
// cannot be read or written, and one that wraps grade.ErrInvalidName if the run
// id is invalid.
func Start(ctx context.Context, c Config) (*Evaluator, error) {
	c = c.withDefaults()
	layout, err := grade.NewLayout(c.Folder.Dir(), c.RunID)
	if err != nil {
		return nil, err
	}
	s := newStore(c, c.Folder.Dir(), c.Folder.Root())
	warnings, err := s.load()
	if err != nil {
		return nil, err
	}
	if err := writeInfo(s.root, layout, c.Editions); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	e := &Evaluator{
		config: c, layouts: map[string]grade.Layout{layout.RunID(): layout}, store: s, started: time.Now(), cancel: stop,
		jobs: map[string]*job{}, pathOwners: map[string]pathOwner{}, logMemory: semaphore.NewWeighted(maxLogMemory),
	}
	e.queueChanged = sync.NewCond(&e.mu)
	e.stopAfterFunc = context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.queueChanged.Broadcast()
	})
	c.Log.Emit(runner.Event{Type: runner.EvaluationStarted, Total: len(c.Selected), Workers: c.Workers})
	if n := len(s.foreign); n > 0 && !c.TrustLogs {
		warnings = append(warnings, fmt.Sprintf("run tests again for %d verdicts: they are not signed with this user's key, "+
			"or their logs were made elsewhere; grade the saved logs with mini eval --trust-logs", n))
	}
	for _, text := range warnings {
		c.Log.Emit(runner.Event{Type: runner.Warning, Text: text})
	}
	for range c.Workers {
		e.workers.Go(func() error { return e.runWorker(ctx) })
	}
	return e, nil
}

// writeInfo writes the official run.json unless it exists.
func writeInfo(dir *rootdir.Dir, layout grade.Layout, editions []datasets.SourceInfo) error {
	if _, err := dir.Lstat(layout.RunInfoPath()); err == nil {
		return nil
	}
	info := grade.RunInfo{CreatedAt: time.Now().UTC().Format("2006-01-02T15:04:05+00:00")}
	for _, edition := range editions {
		if info.Dataset != "" {
			info.Dataset += ", "
		}
		info.Dataset += edition.Name
		info.Split = cmp.Or(info.Split, edition.Split)
	}
	return writeFile(dir, layout.RunInfoPath(), info.JSON())
}

// CheckTask returns the error that Submit would return for a task, except for a
// collision of its file name with that of another task.
func (c Config) CheckTask(t Task) error {
	if _, err := newRunnablePlan(c.withDefaults(), t); err != nil {
		return err
	}
	c.RunID = cmp.Or(c.RunID, "run")
	layout, err := grade.NewLayout(".", c.runID(t))
	if err == nil {
		err = checkNames(layout, t)
	}
	return err
}

// checkNames checks that the task's names are valid file names.
func checkNames(layout grade.Layout, t Task) error {
	_, err := layout.Files(t.Model, t.Instance.ID)
	if err == nil {
		_, err = layout.SummaryName(t.Model)
	}
	if err == nil && strings.HasSuffix(strings.ToLower(t.Instance.ID), ".json") {
		err = fmt.Errorf("instance id %.80q %w: it ends in .json, as record files do", t.Instance.ID, grade.ErrInvalidName)
	}
	if err != nil {
		return fmt.Errorf("evaluate %s: %w", t.Instance.ID, err)
	}
	return nil
}

// Submit adds a patch to the queue. It does not block. The error wraps
// grade.ErrNotGradable or script.ErrNoScript if the row cannot be evaluated,
// and grade.ErrInvalidName if a name is not a valid file name or another task
// uses the same file name. Config.CheckTask detects errors in advance.
func (e *Evaluator) Submit(t Task) error {
	p, err := newRunnablePlan(e.config, t)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	layout, err := e.layoutFor(t)
	if err != nil {
		return err
	}
	if err := checkNames(layout, t); err != nil {
		return err
	}
	files, err := e.store.pathsFor(layout, t.Model, t.Instance.ID)
	if err != nil {
		return err
	}
	if err := e.claimPath(files, t); err != nil {
		return err
	}
	j := &job{Task: t, plan: p, layout: layout, paths: files}
	if e.jobs[files.record] == nil {
		e.order = append(e.order, files.record)
	}
	e.jobs[files.record] = j // a later patch replaces an earlier one
	e.queue = append(e.queue, j)
	e.queueChanged.Signal()
	return nil
}

// layoutFor returns the layout for a task's repetition. The caller holds e.mu.
func (e *Evaluator) layoutFor(t Task) (grade.Layout, error) {
	id := e.config.runID(t)
	if layout, ok := e.layouts[id]; ok {
		return layout, nil
	}
	layout, err := grade.NewLayout(e.config.Folder.Dir(), id)
	if err == nil {
		err = writeInfo(e.store.root, layout, e.config.Editions)
	}
	if err == nil {
		e.layouts[id] = layout
	}
	return layout, err
}

// pathOwner identifies the task that has claimed a path.
type pathOwner struct{ instance, model string }

// claimPath reserves a path for a task. The paths of two models can collide: a
// slash in a model name becomes two underscores, and some file systems ignore
// case. The caller holds e.mu.
func (e *Evaluator) claimPath(p paths, t Task) error {
	key := strings.ToLower(p.record)
	if other, ok := e.pathOwners[key]; ok && other != (pathOwner{t.Instance.ID, t.Model}) {
		return fmt.Errorf("evaluate %s: model %.80q %w: instance %.80q of model %.80q uses its path",
			t.Instance.ID, t.Model, grade.ErrInvalidName, other.instance, other.model)
	}
	e.pathOwners[key] = pathOwner{t.Instance.ID, t.Model}
	return nil
}

// lock locks the mutex with this name. It serializes two tasks with the same
// patch, so that the second task finds the verdict of the first.
func (e *Evaluator) lock(name string) (unlock func()) {
	value, _ := e.locks.LoadOrStore(name, new(sync.Mutex))
	mutex := value.(*sync.Mutex) //nolint:errcheck // all values have this type
	mutex.Lock()
	return mutex.Unlock
}

// isSuperseded reports whether a later job with the same path has replaced j.
func (e *Evaluator) isSuperseded(j *job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.jobs[j.paths.record] != j
}

// runWorker evaluates jobs until ctx is done, or the queue is closed and empty.
// A failed write stops all workers, because further results would be lost.
func (e *Evaluator) runWorker(ctx context.Context) error {
	for j := e.nextJob(ctx); j != nil; j = e.nextJob(ctx) {
		if e.config.Slots.Acquire(ctx, 1) != nil {
			return nil //nolint:nilerr // ctx is done
		}
		err := e.evaluateJob(ctx, j)
		e.config.Slots.Release(1)
		if err != nil && ctx.Err() == nil {
			e.cancel(err)
			return fmt.Errorf("evaluate %s: %w", j.Instance.ID, err)
		}
	}
	return nil
}

// nextJob waits for a job. It returns nil if ctx is done, or the queue is closed
// and empty.
func (e *Evaluator) nextJob(ctx context.Context) *job {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) == 0 && !e.closed && ctx.Err() == nil {
		e.queueChanged.Wait()
	}
	if ctx.Err() != nil || len(e.queue) == 0 {
		return nil
	}
	j := e.queue[0]
	e.queue = slices.Delete(e.queue, 0, 1)
	return j
}

// Wait closes the queue, waits for the workers and returns the summary. It
// returns an error only if the run folder cannot be written.
func (e *Evaluator) Wait() (Summary, error) {
	e.mu.Lock()
	e.closed = true
	e.queueChanged.Broadcast()
	e.mu.Unlock()
	workerErr := e.workers.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopAfterFunc()
	e.cancel(nil)
	s, err := e.writeSummaries()
	e.config.Log.Emit(runner.Event{Type: runner.EvaluationFinished, Total: s.evaluatedCount()})
	return s, errors.Join(workerErr, err)
}

// Run evaluates all tasks and returns the summary.
func Run(ctx context.Context, c Config, tasks []Task) (Summary, error) {
	e, err := Start(ctx, c)
	if err != nil {
		return Summary{}, err
	}
	for _, t := range tasks {
		err = errors.Join(err, e.Submit(t))
	}
	s, waitErr := e.Wait()
	return s, errors.Join(err, waitErr)
}
