// Package evaluate runs the tests of patches. It copies a patch and the
// evaluation script of its instance into a fresh sandbox, applies the patch and
// runs the script as the official SWE-bench harness does (release 5.0.2), and
// grades the log with package grade. It writes the same files as the harness, and
// a verdict record. It works with any implementation of Sandboxes.
//
//	c := evaluate.Config{Folder: folder, Log: log, Sandboxes: s, RunID: "first", Workers: 4, Timeout: 30 * time.Minute}
//	sum, err := evaluate.Run(ctx, c, []evaluate.Task{evaluate.NewTask(in, model, patch)})
//
// # Classes
//
// Every evaluation ends in one class. The first matching line decides:
//
//	what happened                                        class           files in the official tree
//	the patch is null, or empty                          empty           none
//	the sandbox does not start (image, engine, disk)     infrastructure  run_instance.log
//	the sandbox is lost: killed from inside or outside,
//	  out of memory, or its engine has stopped           infrastructure  those written so far
//	a command failed because the engine's disk is full   infrastructure  those written so far
//	the log cannot be written on this machine            infrastructure  those written so far
//	git or /testbed is missing in the image              infrastructure  patch.diff, run_instance.log
//	no command can apply the patch                       apply_failed    patch.diff, run_instance.log
//	the script takes longer than the timeout             timed_out       all but report.json
//	the parser crashes on the log                        error           all but report.json
//	the verdict is "resolved"                            resolved        all
//	the kernel killed processes: out of memory           infrastructure  all; report.json has the graded log
//	otherwise                                            unresolved      all
//
// A lost sandbox is always infrastructure, because a script that ends its own
// container cannot be distinguished from a failing machine. The evaluator repeats
// such a run, up to Config.Retries.MaxTries runs in total; a run that the cluster
// disrupted does not count, up to MaxDisruptions. If a file system inside the
// sandbox is full (a tmpfs), it grades the log as usual.
//
// An infrastructure problem that a log only mentions does not change the class,
// because a patch can print any text. It is in TestRun.FailureReason, as in the
// official summary.
//
// An infrastructure failure is not a verdict. It is never cached, and a restarted
// evaluation runs the patch again. If several runs of the same patch have
// different classes, the verdict is unstable (see Config.RerunFailed).
//
// # Files
//
// Below the folder of the run:
//
//	logs/run_evaluation/<run id>/<model>/<instance>/  the official log tree (see grade.Layout)
//	verdicts/<run id>/<model>/<instance>.json         a verdicts.Record: the verdict, its inputs and every run
//	verdicts/<run id>/<model>/<instance>/<n>/         files of reruns and runs without flagged files
//	verdicts/<run id>.json                            the Summary
//	<model>.<run id>.json                             the official summary
package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

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

// Config configures an Evaluator. Folder, Log, Sandboxes, RunID and,
// for Run, Workers are required.
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
	// Workers is the number of patches evaluated in parallel. With more than half the
	// number of processors, tests compete for them and may exceed timeouts.
	Workers int
	// Timeout limits the whole evaluation script.
	Timeout time.Duration
	// Pool runs the jobs of Run with its workers; nil means Workers of its own.
	Pool *runner.Pool
	// Retries limits the runs of a patch for one purpose.
	// Only a run with an infrastructure failure is repeated. Run uses Retries and
	// Workers; the jobs of Evaluator.Job are run by a runner.Batch.
	Retries runner.Retries
	// RerunFailed is the maximum number of reruns of a failed patch (see
	// verdicts.Class.IsFailure), counting those of earlier evaluations in this
	// folder. The first different result makes the verdict unstable and ends
	// the reruns.
	RerunFailed int
	// Cache is a folder of verdicts that several runs share. If it is empty,
	// only verdicts in Folder are reused.
	Cache string
	// SigningKey is the user's secret key, which signs the records in Folder and
	// Cache. The evaluator does not reuse a record without that signature, because
	// another user may have made it; it runs the tests again. With an empty key it
	// reuses no record of an earlier session.
	SigningKey []byte
	// TrustVerdicts takes records that are not signed with SigningKey if their
	// inputs are the same and their logs are there. They stay without its signature.
	TrustVerdicts bool
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

// Evaluator makes the jobs that evaluate patches. Its methods are safe for
// concurrent use.
type Evaluator struct {
	config    Config
	store     *store
	logMemory *semaphore.Weighted // limits the memory for logs

	mu           sync.Mutex
	jobs         map[string]*job // by path of the record
	order        []string        // paths of the records, in the order of submission
	cacheWarning sync.Once       // emits the warning about an unwritable cache
}

// Open reads the earlier verdicts of the folder. It returns an error if the folder
// cannot be read or written, and one that wraps grade.ErrInvalidName if the run id is
// invalid.
func Open(c Config) (*Evaluator, error) {
	s, warnings, err := newStore(c, c.Folder.Dir, c.Folder.Root)
	if err != nil {
		return nil, err
	}
	e := &Evaluator{
		config: c, store: s, logMemory: semaphore.NewWeighted(maxLogMemory),
		jobs: map[string]*job{},
	}
	layout, err := grade.NewLayout(c.Folder.Dir, c.RunID)
	if err == nil {
		err = writeInfo(s.root, layout, c.Editions)
	}
	if err != nil {
		return nil, err
	}
	c.Log.Emit(runner.Event{Type: runner.EvaluationStarted, Total: len(c.Selected), Workers: c.Workers})
	for _, text := range warnings {
		c.Log.Emit(runner.Event{Type: runner.Warning, Text: text})
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

// CheckTasks returns the errors of tasks that cannot be evaluated, and nil for the others: those that Job rejects, and
// names with the same path as those of an earlier task. Two models have the same path if they differ in a slash,
// which becomes two underscores, or in case, which some file systems ignore.
func (c Config) CheckTasks(tasks []Task) []error {
	errs, owners := make([]error, len(tasks)), map[string]Task{}
	for i, t := range tasks {
		j, err := c.newJob(".", t)
		if err != nil {
			errs[i] = err
			continue
		}
		path := strings.ToLower(j.paths.record)
		other, ok := owners[path]
		if ok && (other.Instance.ID != t.Instance.ID || other.Model != t.Model) {
			errs[i] = fmt.Errorf("evaluate %s: model %.80q %w: instance %.80q of model %.80q uses its path",
				t.Instance.ID, t.Model, grade.ErrInvalidName, other.Instance.ID, other.Model)
			continue
		}
		owners[path] = t
	}
	return errs
}

// newJob returns the job for a task in the run folder dir, without its evaluator.
func (c Config) newJob(dir string, t Task) (*job, error) {
	if t.Instance.TaskDir != "" {
		return nil, fmt.Errorf("%s %w: its tests run at the end of each attempt, in the container of the agent", t.Instance.ID, grade.ErrNotGradable)
	}
	p, err := newPlan(c, t)
	if err != nil {
		return nil, err
	}
	if len(p.script.Assets) > 0 {
		return nil, fmt.Errorf("%s %w: its tests need the file %s, which the row does not contain",
			t.Instance.ID, grade.ErrNotGradable, p.script.Assets[0].Path)
	}
	id := c.RunID
	if t.repetition() != 0 { // each repetition has its own
		id = fmt.Sprintf("%s-sample-%d", id, t.Repetition)
	}
	layout, err := grade.NewLayout(dir, id)
	if err == nil {
		_, err = layout.SummaryName(t.Model)
	}
	if err == nil && strings.HasSuffix(strings.ToLower(t.Instance.ID), ".json") {
		err = fmt.Errorf("instance id %.80q %w: it ends in .json, as record files do", t.Instance.ID, grade.ErrInvalidName)
	}
	var files paths
	if err == nil {
		files, err = pathsFor(dir, layout, t.Model, t.Instance.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", t.Instance.ID, err)
	}
	return &job{Task: t, plan: p, layout: layout, paths: files}, nil
}

// Job returns the job that evaluates a patch. Its verdict takes the place of that on
// an earlier patch of the same model for the same instance; the same patch is the same
// job until that has a verdict. The error wraps grade.ErrNotGradable or
// script.ErrNoScript if the row cannot be evaluated, and grade.ErrInvalidName if a name
// is not a valid file name. Config.CheckTasks detects errors in advance.
func (e *Evaluator) Job(t Task) (runner.Work, error) {
	j, err := e.config.newJob(e.config.Folder.Dir, t)
	if err == nil {
		err = writeInfo(e.store.root, j.layout, e.config.Editions)
	}
	if err != nil {
		return nil, err
	}
	j.evaluator = e
	e.mu.Lock()
	defer e.mu.Unlock()
	earlier := e.jobs[j.paths.record]
	switch {
	case earlier == nil:
		e.order = append(e.order, j.paths.record)
	case earlier.record == nil && earlier.Key() == j.Key():
		return earlier, nil
	}
	e.jobs[j.paths.record] = j
	return j, nil
}

// Close writes the summaries and returns that of mini. No job of the evaluator runs.
func (e *Evaluator) Close() (Summary, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.writeSummaries()
	e.config.Log.Emit(runner.Event{Type: runner.EvaluationFinished, Total: s.evaluatedCount()})
	return s, err
}

// Run evaluates all tasks and returns the summary. Cancelling ctx aborts the current
// runs, which leave no record; the next evaluation repeats them.
func Run(ctx context.Context, c Config, tasks []Task) (Summary, error) {
	e, err := Open(c)
	if err != nil {
		return Summary{}, err
	}
	for _, t := range tasks {
		_, jobErr := e.Job(t)
		err = errors.Join(err, jobErr)
	}
	jobs := make([]runner.Work, len(e.order))
	for i, path := range e.order {
		jobs[i] = e.jobs[path]
	}
	runEvaluations := func() error { return runner.RunEvaluations(ctx, e.config.Workers, e.config.Retries, c.Log, jobs) }
	if c.Pool != nil {
		runEvaluations = func() error { return c.Pool.RunEvaluations(ctx, e.config.Retries, c.Log, jobs) }
	}
	runErr := runEvaluations()
	s, closeErr := e.Close()
	return s, errors.Join(err, runErr, closeErr)
}

// FindReusable returns, for each task, the class of the verdict that an
// evaluation would reuse from a folder or the cache, or "" if it would run the
// tests. The class of an empty patch is verdicts.Empty. FindReusable writes
// nothing; the folder need not be locked and may be missing. It uses the same
// fields of Config as Open, except Folder and Log. If Sandboxes is nil,
// FindReusable assumes that images have not changed since the verdicts.
//
// FindReusable returns an error if the folder cannot be read or a row cannot be
// evaluated, and one that wraps grade.ErrInvalidName for an invalid name.
func (c Config) FindReusable(ctx context.Context, dir string, tasks []Task) ([]verdicts.Class, error) {
	root, err := rootdir.Open(dir)
	switch {
	case err == nil:
		defer root.Close() //nolint:errcheck // only read
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read verdicts: %w", err)
	}
	s, _, err := newStore(c, dir, root)
	if err != nil {
		return nil, err
	}
	classes := make([]verdicts.Class, len(tasks))
	for i, t := range tasks {
		j, err := c.newJob(dir, t)
		if err != nil {
			return nil, err
		}
		if t.isEmpty() {
			classes[i] = verdicts.Empty
		} else if v, ok := s.decide(j, c.identify(ctx, j)); ok {
			classes[i] = v.record.Class
		}
	}
	return classes, nil
}
