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
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
)

// logLimit is how many bytes of a log are kept, its beginning and its end.
const logLimit = 256 << 20

// Defaults of Config.
const (
	DefaultTimeout  = 1800 * time.Second // the official one
	DefaultMaxTries = 3
)

// Sandboxes makes a fresh sandbox for an evaluation: of the instance's image,
// with root's rights, and with files in and out (env.Files). runner.Sandboxes
// fits, but not those of the agent.
type Sandboxes interface {
	Start(ctx context.Context, in datasets.Instance) (env.Environment, error)
}

// Identifying is implemented by Sandboxes that know the image of an instance
// without starting one. It saves the start where the cache has the verdict.
type Identifying interface {
	// Identify returns the image that a start would take now; it is empty where
	// that is not known, as of one that is still to be pulled.
	Identify(ctx context.Context, in datasets.Instance) (Image, error)
}

// Image is what a name of an image stands for.
type Image struct {
	ID     string
	Digest string // in the registry; may be empty
	Arch   string // in Go's names
}

// Config is what evaluations need. Folder, Log, Sandboxes and RunID are
// required.
type Config struct {
	// Folder is held by the caller, so that nobody else evaluates in it:
	// runner.Open fails with a *runner.LockedError where somebody does.
	Folder *runner.Folder
	// Log is told what happens: EvaluationStarted, EvaluationAttempt, Verdict and
	// EvaluationFinished.
	Log       *runner.Log
	Sandboxes Sandboxes
	// RunID names the evaluation in the official tree.
	RunID string
	// Workers is how many run at once; zero means half of the processors, at
	// least one: tests that fight for processors run into timeouts.
	Workers int
	// Timeout bounds the script, all of it; zero means DefaultTimeout.
	Timeout time.Duration
	// MaxTries bounds how often an infrastructure failure is tried; zero means
	// DefaultMaxTries.
	MaxTries int
	// RerunFailed is how often what failed is run again (see Class.Failed), those
	// of an earlier evaluation in this folder too. A patch that ends otherwise
	// once is unstable, and not run again.
	RerunFailed int
	// Cache is a folder of verdicts that several runs share; empty means that
	// only those of Folder are reused.
	Cache string
	// Key is a secret of the user's, which records in Folder are sealed with. A
	// record without that seal may be a stranger's: its patch is evaluated again.
	// With an empty key no record of an earlier session is reused.
	Key []byte
	// TrustLogs grades the saved log of such a record instead, where it has one.
	// The new record says so (Record.ForeignLog).
	TrustLogs bool
	// Selected are the instances of the dataset, of which the official summary
	// speaks; empty means those that were submitted.
	Selected []string
	// Editions are those of the dataset, for the records.
	Editions []datasets.Edition
	// Network and Profile say what the sandboxes are like. A verdict is reused
	// only where they are the same.
	Network, Profile string
	// Engine names what runs the sandboxes, for the records.
	Engine      string
	MiniVersion string
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	c.Workers = cmp.Or(c.Workers, max(1, runtime.NumCPU()/2))
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.MaxTries = cmp.Or(c.MaxTries, DefaultMaxTries)
	return c
}

// Evaluator works on what is submitted to it. Its methods are safe for
// concurrent use.
type Evaluator struct {
	config  Config
	runs    map[string]grade.Run // by id: the evaluation's own, and those of further samples
	store   *store
	began   time.Time
	stop    context.CancelCauseFunc
	workers errgroup.Group
	unhook  func() bool
	working sync.Map // name -> *sync.Mutex; see lockFor
	reading *semaphore.Weighted

	mu       sync.Mutex
	changed  *sync.Cond // the queue, or that there is no more
	queue    []*job
	closed   bool
	jobs     map[string]*job  // by the path of the record
	named    map[string]owner // the paths, as file systems may see them -> whose they are
	order    []string         // those paths, as they were submitted
	written  time.Time        // when the summaries were
	unshared sync.Once        // a cache that cannot be written was told of
}

// job is a task on its way.
type job struct {
	Task
	plan   plan
	run    grade.Run // that it is part of
	paths  paths
	record *verdicts.Record // nil before there is a verdict
	reused bool
	ran    bool // something was run for it
	// vouched says that the verdict's run is of this session or from the cache.
	// What a folder brings may be anybody's, and goes no further.
	vouched bool
}

// ErrClosed is returned by Submit after Wait.
var ErrClosed = errors.New("the evaluation takes no more patches")

// Begin reads what earlier evaluations left in the folder, and starts the
// workers. They end with Wait. Cancelling ctx stops them: what runs then is
// given up, leaves no record, and runs again the next time. The error is about
// the folder, or wraps grade.ErrName for a run id that is none.
func Begin(ctx context.Context, c Config) (*Evaluator, error) {
	c = c.withDefaults()
	run, err := grade.NewRun(c.Folder.Dir(), c.RunID)
	if err != nil {
		return nil, err
	}
	s := newStore(c, c.Folder.Dir(), c.Folder.Root())
	warnings, err := s.read()
	if err != nil {
		return nil, err
	}
	if err := writeInfo(s.root, run, c.Editions); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	e := &Evaluator{config: c, runs: map[string]grade.Run{run.ID(): run}, store: s, began: time.Now(), stop: stop, jobs: map[string]*job{}, named: map[string]owner{}, reading: semaphore.NewWeighted(memory)}
	e.changed = sync.NewCond(&e.mu)
	e.unhook = context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed.Broadcast()
	})
	c.Log.Emit(runner.Event{Type: runner.EvaluationStarted, Total: len(c.Selected), Workers: c.Workers})
	if n := len(s.foreign); n > 0 && !c.TrustLogs {
		warnings = append(warnings, fmt.Sprintf("%d of the verdicts in this folder are not this user's, or rest on logs made elsewhere: "+
			"their tests are run again; mini eval --trust-logs grades their saved logs instead", n))
	}
	for _, text := range warnings {
		c.Log.Emit(runner.Event{Type: runner.Warning, Text: text})
	}
	for range c.Workers {
		e.workers.Go(func() error { return e.work(ctx) })
	}
	return e, nil
}

// writeInfo writes run.json, which says of what the run is, unless it is there.
func writeInfo(dir *rootdir.Dir, run grade.Run, editions []datasets.Edition) error {
	if _, err := dir.Lstat(run.Info()); err == nil {
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
	return writeFile(dir, run.Info(), info.JSON())
}

// Check says whether a task can be evaluated at all. The error is as in Submit.
func (c Config) Check(t Task) error {
	if _, err := planToRun(c.withDefaults(), t); err != nil {
		return err
	}
	c.RunID = cmp.Or(c.RunID, "run")
	run, err := grade.NewRun(".", c.runID(t))
	if err == nil {
		err = named(run, t)
	}
	return err
}

// named says whether files can be called after a task.
func named(run grade.Run, t Task) error {
	_, err := run.Files(t.Model, t.Instance.ID)
	if err == nil {
		_, err = run.SummaryName(t.Model)
	}
	if err == nil && strings.HasSuffix(strings.ToLower(t.Instance.ID), ".json") {
		err = fmt.Errorf("instance id %.80q %w: it ends as records do", t.Instance.ID, grade.ErrName)
	}
	if err != nil {
		return fmt.Errorf("evaluate %s: %w", t.Instance.ID, err)
	}
	return nil
}

// Submit adds a patch to the queue; it never waits for workers. The error wraps
// grade.ErrNotGradable, or script.ErrNoScript, when the row cannot be
// evaluated, or grade.ErrName for names that cannot be those of files.
// Config.Check finds the same beforehand, but for the names of two patches that
// would be one file's.
func (e *Evaluator) Submit(t Task) error {
	p, err := planToRun(e.config, t)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	run, err := e.runOf(t)
	if err != nil {
		return err
	}
	if err := named(run, t); err != nil {
		return err
	}
	where, err := e.store.paths(run, t.Model, t.Instance.ID)
	if err != nil {
		return err
	}
	if err := e.claim(where, t); err != nil {
		return err
	}
	j := &job{Task: t, plan: p, run: run, paths: where}
	if e.jobs[where.record] == nil {
		e.order = append(e.order, where.record)
	}
	e.jobs[where.record] = j // a later patch takes the place of an earlier one
	e.queue = append(e.queue, j)
	e.changed.Signal()
	return nil
}

// runOf is the evaluation that a task is part of. The lock is held.
func (e *Evaluator) runOf(t Task) (grade.Run, error) {
	id := e.config.runID(t)
	if run, ok := e.runs[id]; ok {
		return run, nil
	}
	run, err := grade.NewRun(e.config.Folder.Dir(), id)
	if err == nil {
		err = writeInfo(e.store.root, run, e.config.Editions)
	}
	if err == nil {
		e.runs[id] = run
	}
	return run, err
}

// owner is whose files are.
type owner struct{ instance, model string }

// claim keeps the files of two patches apart. A slash becomes two underscores in
// the name of a folder, and some file systems take A for a. The lock is held.
func (e *Evaluator) claim(p paths, t Task) error {
	seen := strings.ToLower(p.record)
	if other, ok := e.named[seen]; ok && other != (owner{t.Instance.ID, t.Model}) {
		return fmt.Errorf("evaluate %s: the model %.80q %w of its own: %.80q of the model %.80q has it",
			t.Instance.ID, t.Model, grade.ErrName, other.instance, other.model)
	}
	e.named[seen] = owner{t.Instance.ID, t.Model}
	return nil
}

// lockFor lets one worker at a time work under a name: of two that have the same
// patch, the second finds the verdict of the first.
func (e *Evaluator) lockFor(name string) (unlock func()) {
	value, _ := e.working.LoadOrStore(name, new(sync.Mutex))
	mutex := value.(*sync.Mutex) //nolint:errcheck // the map has nothing else
	mutex.Lock()
	return mutex.Unlock
}

// superseded says that a later patch has taken the place of a job's.
func (e *Evaluator) superseded(j *job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.jobs[j.paths.record] != j
}

// work takes jobs until there are no more. What cannot be written stops all
// workers: working on would lose results.
func (e *Evaluator) work(ctx context.Context) error {
	for j := e.next(ctx); j != nil; j = e.next(ctx) {
		if err := e.judge(ctx, j); err != nil && ctx.Err() == nil {
			e.stop(err)
			return fmt.Errorf("evaluate %s: %w", j.Instance.ID, err)
		}
	}
	return nil
}

// next waits for a job; nil says that there are no more.
func (e *Evaluator) next(ctx context.Context) *job {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) == 0 && !e.closed && ctx.Err() == nil {
		e.changed.Wait()
	}
	if ctx.Err() != nil || len(e.queue) == 0 {
		return nil
	}
	j := e.queue[0]
	e.queue = slices.Delete(e.queue, 0, 1)
	return j
}

// Wait takes no more patches, waits for those there are, and returns how all of
// them ended. The error is about the folder of the run, and about nothing else.
func (e *Evaluator) Wait() (Summary, error) {
	e.mu.Lock()
	e.closed = true
	e.changed.Broadcast()
	e.mu.Unlock()
	failed := e.workers.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unhook()
	e.stop(nil)
	s, err := e.summaries()
	e.config.Log.Emit(runner.Event{Type: runner.EvaluationFinished, Total: s.judged()})
	return s, errors.Join(failed, err)
}

// Run evaluates all tasks and returns how they ended.
func Run(ctx context.Context, c Config, tasks []Task) (Summary, error) {
	e, err := Begin(ctx, c)
	if err != nil {
		return Summary{}, err
	}
	for _, t := range tasks {
		err = errors.Join(err, e.Submit(t))
	}
	s, failed := e.Wait()
	return s, errors.Join(err, failed)
}
