package evaluate

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
)

// retryDelay is the delay after the first run that ends with an infrastructure
// failure. The delay after run n is n times as long.
const retryDelay = time.Second

// superseded is the class in the event for a patch that was not evaluated because
// a later patch replaced it.
const superseded = "superseded"

// evaluateJob obtains and emits the verdict on a job. It returns an error if the
// run folder cannot be written, or if ctx is cancelled; an unfinished job then has
// no record.
func (e *Evaluator) evaluateJob(ctx context.Context, j *job) error {
	// Of two patches with the same path, the one submitted later counts.
	defer e.lock(j.paths.record)()
	if e.isSuperseded(j) {
		e.config.Log.Emit(runner.Event{
			Type: runner.Verdict, Instance: j.Instance.ID, Repetition: j.Repetition, ResultModel: j.Model,
			Verdict: superseded, Text: "a later patch replaced it",
		})
		return nil
	}
	r, err := e.obtainVerdict(ctx, j)
	if err != nil {
		return err
	}
	event := runner.Event{
		Type: runner.Verdict, Instance: j.Instance.ID, Repetition: j.Repetition, ResultModel: j.Model,
		Verdict: string(r.Class), Text: r.Reason,
	}
	if !j.reused {
		event.Elapsed = r.Seconds
	}
	e.config.Log.Emit(event)
	e.mu.Lock()
	defer e.mu.Unlock()
	j.record = &r
	if time.Since(e.summariesWritten) < flushInterval {
		return nil
	}
	_, err = e.writeSummaries()
	return err
}

// obtainVerdict reuses a verdict on a job or runs its tests. It also makes the
// extra runs.
func (e *Evaluator) obtainVerdict(ctx context.Context, j *job) (verdicts.Record, error) {
	if j.isEmpty() {
		r := e.newRecord(j, j.plan.basis)
		r.Class, r.Reason = verdicts.Empty, "the prediction has no patch"
		if err := e.store.remove(j.paths); err != nil { // files of an earlier patch
			return r, err
		}
		return r, e.store.write(j.paths, r)
	}
	defer e.lock(j.plan.basis.RowSHA256 + j.plan.basis.PatchSHA256)()
	r, err := e.reuseVerdict(ctx, j)
	if err == nil && !r.Class.IsFinal() {
		r, err = e.runForVerdict(ctx, j)
	}
	if err == nil {
		err = e.rerunFailures(ctx, j, &r)
	}
	if err == nil {
		err = e.runWithoutSuspect(ctx, j, &r)
	}
	return r, err
}

func (e *Evaluator) newRecord(j *job, basis verdicts.Basis) verdicts.Record {
	return verdicts.Record{
		Format: verdicts.Format, Instance: j.Instance.ID, Model: j.Model, RunID: j.layout.RunID(), Repetition: j.repetition(),
		Basis: basis,
	}
}

// reuseVerdict returns the record of an existing verdict on the job, or a record
// without a class if there is none.
func (e *Evaluator) reuseVerdict(ctx context.Context, j *job) (verdicts.Record, error) {
	basis, record, valid := e.findOwnRecord(ctx, j)
	if valid {
		if _, signed := e.store.get(j.paths.record); signed {
			j.reused = true
			return record, nil
		}
		r, err := e.gradeForeignLog(ctx, j, record)
		if err != nil || r.Class.IsFinal() {
			return r, err
		}
	}
	return e.reuseByKey(j, basis.Key)
}

// gradeForeignLog grades the saved log of a record that is not signed with the
// user's key. It returns a record without a class if the log cannot be graded.
func (e *Evaluator) gradeForeignLog(ctx context.Context, j *job, record verdicts.Record) (verdicts.Record, error) {
	run := *record.VerdictRun()
	run.Dir = e.relativePath(j.paths.official.Dir)
	// Do not trust the other fields of the record.
	record = verdicts.Record{
		Format: verdicts.Format, Instance: record.Instance, Model: record.Model, RunID: j.layout.RunID(),
		Repetition: j.repetition(), Basis: record.Basis, Runs: []verdicts.TestRun{run},
	}
	regrader := &Regrader{dir: e.store.root, editions: e.config.Editions, now: e.started, logMemory: e.logMemory}
	regraded, err := regrader.Regrade(ctx, record, j.Instance)
	if ctx.Err() != nil {
		return verdicts.Record{}, context.Cause(ctx)
	}
	if err != nil {
		return verdicts.Record{}, nil //nolint:nilerr // run the tests instead
	}
	for path, report := range regraded.Reports {
		if err := writeFile(e.store.root, path, report); err != nil {
			return verdicts.Record{}, err
		}
	}
	r := regraded.graded
	j.reused, r.ForeignLog = r.Class.IsFinal(), true
	return r, e.saveRecord(j, &r)
}

// findOwnRecord returns the inputs of a job (basis) as far as they are known
// without a sandbox. If the job's own path has a valid verdict with these inputs,
// it also returns that record and sets valid. With Config.TrustLogs the record may
// be unsigned if it has a log to grade.
func (e *Evaluator) findOwnRecord(
	ctx context.Context, j *job,
) (basis verdicts.Basis, record verdicts.Record, valid bool) {
	basis = j.plan.basis
	if s, ok := e.config.Sandboxes.(ImageIdentifier); ok {
		image, err := s.Identify(ctx, j.Instance)
		if err == nil { // otherwise starting the sandbox reports the error
			basis = basis.WithImage(image.ID, image.Digest, image.Arch)
		}
	}
	record, ok := e.store.get(j.paths.record)
	if !ok && e.config.TrustLogs {
		record = e.store.foreign[j.paths.record].Clone()
		switch record.VerdictClass() {
		case verdicts.Resolved, verdicts.Unresolved, verdicts.Error:
			ok = record.VerdictRun() != nil
		}
	}
	if ok && basis.Key == "" {
		// The image is not present now: assume that it has not changed since the verdict.
		basis = basis.WithImage(record.Basis.ImageID, record.Basis.ImageDigest, record.Basis.ImageArch)
	}
	valid = ok && record.Instance == j.Instance.ID && record.Model == j.Model &&
		basis.Key != "" && record.Basis.Key == basis.Key &&
		record.Class.IsFinal() && isComplete(e.store.root, record, j.paths.official)
	return basis, record, valid
}

// reuseByKey copies the verdict of another record with this cache key to the job's
// path. It returns a record without a class if there is none.
func (e *Evaluator) reuseByKey(j *job, key string) (verdicts.Record, error) {
	reusable, ok := e.store.find(key)
	if !ok || reusable.files.Dir == j.paths.official.Dir || reusable.record.Instance != j.Instance.ID {
		return verdicts.Record{}, nil
	}
	ok, err := e.store.importFiles(reusable, key, j.paths)
	if !ok || err != nil {
		return verdicts.Record{}, err
	}
	r := reusable.record
	j.reused, j.trusted = true, reusable.path == ""
	r.Model, r.RunID, r.Repetition, r.ReusedFrom = j.Model, j.layout.RunID(), j.repetition(), reusable.from
	r.Basis.Editions = j.plan.basis.Editions
	official := r.VerdictRun()
	for i := range r.Runs {
		r.Runs[i].Dir = "" // the files of the other runs are not copied
	}
	official.Dir = e.relativePath(j.paths.official.Dir)
	return r, e.saveRecord(j, &r)
}

// runForVerdict makes the run that decides the verdict.
func (e *Evaluator) runForVerdict(ctx context.Context, j *job) (verdicts.Record, error) {
	r := e.newRecord(j, j.plan.basis)
	var reused verdicts.Record
	onStart := func(info env.Info) (err error) {
		r.Basis = r.Basis.WithSandbox(info)
		reused, err = e.reuseByKey(j, r.Basis.Key)
		if err == nil && reused.Class.IsFinal() {
			err = errVerdictFound
		}
		return err
	}
	if err := e.store.remove(j.paths); err != nil {
		return r, err
	}
	err := e.runWithRetries(ctx, j, &r, verdicts.ForVerdict, j.Patch, j.paths.official, onStart)
	if errors.Is(err, errVerdictFound) {
		return reused, nil
	}
	if err != nil {
		return r, err
	}
	j.trusted = true
	return r, e.saveRecord(j, &r)
}

// rerunFailures reruns a failed patch until a rerun has another result or
// Config.RerunFailed is reached.
func (e *Evaluator) rerunFailures(ctx context.Context, j *job, r *verdicts.Record) error {
	if j.baseline == noop { // noop is expected to fail
		return nil
	}
	for n := countReruns(r); n < e.config.RerunFailed && r.Class.IsFailure(); n++ {
		files := j.paths.extraRun(len(r.Runs) + 1)
		if err := e.runWithRetries(ctx, j, r, verdicts.ForRerun, j.Patch, files, ignoreInfo); err != nil {
			return err
		}
		j.reused = false
		if err := e.saveRecord(j, r); err != nil {
			return err
		}
	}
	return nil
}

// countReruns counts the reruns with a final class. It includes those of earlier
// evaluations, so that a repeated mini eval makes no more reruns.
func countReruns(r *verdicts.Record) int {
	n := 0
	for _, run := range r.Runs {
		if run.Purpose == verdicts.ForRerun && run.Class.IsFinal() {
			n++
		}
	}
	return n
}

func ignoreInfo(env.Info) error { return nil }

// runWithoutSuspect evaluates the patch without its flagged files. It skips the
// baseline tasks.
func (e *Evaluator) runWithoutSuspect(ctx context.Context, j *job, r *verdicts.Record) error {
	if j.baseline != "" || !r.Class.IsFinal() || r.ResolvedWithoutSuspect != nil {
		return nil
	}
	findings := tampering.CheckPatch(j.Patch, j.Instance)
	if len(findings) == 0 {
		return nil
	}
	remaining := tampering.RemoveFiles(j.Patch, tampering.Files(findings))
	class := verdicts.Empty
	if len(remaining) > 0 {
		class = e.store.class(r.Basis.CacheKeyWithPatch(verdicts.PatchHash(remaining)))
	}
	if class == "" {
		files := j.paths.extraRun(len(r.Runs) + 1)
		if err := e.runWithRetries(ctx, j, r, verdicts.WithoutSuspect, remaining, files, ignoreInfo); err != nil {
			return err
		}
		j.reused = false
		run := &r.Runs[len(r.Runs)-1]
		run.PatchSHA256, run.PatchBytes = verdicts.PatchHash(remaining), len(remaining)
		run.Key = r.Basis.CacheKeyWithPatch(run.PatchSHA256)
		class = run.Class
	}
	if class.IsFinal() {
		resolved := class == verdicts.Resolved
		r.ResolvedWithoutSuspect = &resolved
	}
	return e.saveRecord(j, r)
}

// runWithRetries makes a test run and repeats it after infrastructure failures,
// up to Config.MaxRuns and Config.MaxDisruptions. It appends every run to the record.
func (e *Evaluator) runWithRetries(
	ctx context.Context, j *job, r *verdicts.Record, purpose verdicts.Purpose, patch []byte, files grade.Files,
	onStart func(env.Info) error,
) error {
	t := &testRun{
		root: e.store.root, config: e.config, instance: j.Instance, plan: j.plan, files: files,
		patch: patch, unpatched: j.baseline == noop, onStart: onStart, logMemory: e.logMemory,
	}
	tries, disruptions := 0, 0
	for {
		n := len(r.Runs) + 1
		e.config.Log.Emit(runner.Event{
			Type: runner.EvaluationRunStarted, Instance: j.Instance.ID, Repetition: j.Repetition, ResultModel: j.Model,
			Attempt: n, Text: string(purpose),
		})
		result, err := t.run(ctx)
		if err != nil {
			return err
		}
		result.Purpose, result.Dir, j.ranTests = purpose, e.relativePath(files.Dir), true
		for i := range r.Runs {
			if r.Runs[i].Dir == result.Dir {
				r.Runs[i].Dir = "" // the new run replaced its files
			}
		}
		r.Runs = append(r.Runs, result)
		if result.Status == env.SandboxDisrupted && disruptions < e.config.MaxDisruptions {
			disruptions++
		} else {
			tries++
		}
		if result.Class != verdicts.Infrastructure || result.Permanent || tries >= e.config.MaxRuns {
			return nil
		}
		e.config.Log.Emit(runner.Event{
			Type: runner.Verdict, Instance: j.Instance.ID, Repetition: j.Repetition, ResultModel: j.Model, Attempt: n,
			Verdict: string(result.Class), Text: result.Reason, Elapsed: result.Seconds, WillRetry: true,
		})
		if err := sleep(ctx, time.Duration(tries+disruptions)*retryDelay); err != nil {
			return err
		}
	}
}

// sleep waits for d. If ctx is done first, it returns the cause.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// saveRecord derives the record's class from its runs and writes the record. If
// this session ran the tests and the verdict is trusted, it also adds the
// record to the cache.
func (e *Evaluator) saveRecord(j *job, r *verdicts.Record) error {
	r.DeriveClass()
	r.Flags = nil
	if j.baseline == "" {
		r.Flags = tampering.CheckPatch(j.Patch, j.Instance)
		if run := r.VerdictRun(); run != nil {
			r.Flags = append(r.Flags, run.Flags...)
		}
	}
	r.Gold = e.store.class(r.Basis.CacheKeyWithPatch(verdicts.PatchHash([]byte(j.Instance.Patch))))
	r.Noop = e.store.class(r.Basis.CacheKeyWithPatch(verdicts.NoPatch))
	if err := e.store.write(j.paths, *r); err != nil || !j.ranTests || !j.trusted {
		return err
	}
	if err := e.store.addToCache(j.paths, *r); err != nil {
		// Not fatal: the run folder has the verdict, but other runs cannot reuse it.
		e.cacheWarning.Do(func() {
			e.config.Log.Emit(runner.Event{Type: runner.Warning, Text: "write verdict to the cache: " + err.Error()})
		})
	}
	return nil
}

// relativePath returns a slash-separated path relative to the run folder.
func (e *Evaluator) relativePath(path string) string {
	rel, err := filepath.Rel(e.config.Folder.Dir(), path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}
