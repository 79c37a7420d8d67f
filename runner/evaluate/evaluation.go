package evaluate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
)

// job evaluates one patch: it reuses a verdict or makes the run that decides it, then
// reruns a failed patch, then makes a run without suspicious files. Each of these is a
// part of the job with tries of its own.
type job struct {
	Task
	evaluator *Evaluator
	plan      plan
	layout    grade.Layout
	paths     paths
	record    *verdicts.Record // nil until there is a verdict; guarded by Evaluator.mu
	reused    bool             // no tests ran for the verdict
	taken     bool             // the verdict is without the user's signature, and stays so

	// What follows is used by the worker only.
	r              verdicts.Record  // the record so far; without a class before the verdict
	purpose        verdicts.Purpose // of the current part; "" before the first
	patch          []byte           // of the current part
	files          grade.Files      // of the current part
	reruns         int              // made, or given up
	triedWithout   bool             // the run without suspicious files was made or given up
	ranTests       bool
	identifyNow    bool // the image is unknown before a sandbox has started
	begun, stopped bool
}

// Key implements runner.Work. Two jobs with the same key have the same verdict.
func (j *job) Key() string { return j.plan.basis.RowSHA256 + j.plan.basis.PatchSHA256 }

// Try makes the next test run that is missing. The first one also looks for an existing
// verdict. A run that ctx ends leaves no record.
func (j *job) Try(ctx context.Context, _ bool) (end runner.End, err error) {
	defer func() {
		switch j.stopped = err != nil && ctx.Err() != nil; {
		case j.stopped:
			j.begun, err = false, nil
		case err != nil:
			err = fmt.Errorf("evaluate %s: %w", j.Instance.ID, err)
		}
	}()
	if !j.begun {
		if err = j.begin(ctx); err != nil || j.purpose == "" {
			return end, err
		}
	}
	e := j.evaluator
	n := len(j.r.Runs) + 1
	e.config.Log.Emit(j.event(runner.Event{Type: runner.EvaluationRunStarted, Attempt: n, Text: string(j.purpose)}))
	t := &testRun{
		root: e.store.root, config: e.config, instance: j.Instance, plan: j.plan, files: j.files,
		patch: j.patch, unpatched: j.baseline == NoopModel, logMemory: e.logMemory,
		onStart: j.onStart,
	}
	err = t.run(ctx)
	if errors.Is(err, errVerdictFound) {
		j.purpose = ""
		return end, nil
	}
	if err != nil {
		return end, err
	}
	j.ranTests = true
	j.addRun(t.result)
	return runner.End{
		Temporary: t.result.Class == verdicts.Infrastructure && !t.result.Permanent,
		Disrupted: t.result.Status == env.SandboxDisrupted,
		Report: func(willRetry bool) {
			if willRetry {
				e.config.Log.Emit(j.event(runner.Event{
					Type: runner.Verdict, Attempt: n, Verdict: string(t.result.Class), Text: t.result.Reason,
					Elapsed: t.result.Seconds, WillRetry: true,
				}))
			}
		},
	}, nil
}

// begin reuses a verdict, or else prepares the run that decides it.
func (j *job) begin(ctx context.Context) (err error) {
	e := j.evaluator
	j.begun, j.purpose, j.reused, j.taken, j.ranTests, j.triedWithout = true, "", false, false, false, false
	if j.isEmpty() {
		j.r = j.newRecord()
		j.r.Class, j.r.Reason = verdicts.Empty, "the prediction has no patch"
		if err = e.store.remove(j.paths); err == nil { // files of an earlier patch
			_, err = e.store.write(j.paths, j.r, true, false)
		}
		return err
	}
	basis := e.config.identify(ctx, j)
	if ok, err := j.reuse(basis); ok || err != nil {
		return err
	}
	j.r, j.reruns, j.identifyNow = j.newRecord(), 0, basis.Key == ""
	j.purpose, j.patch, j.files = verdicts.ForVerdict, j.Patch, j.paths.official
	return e.store.remove(j.paths)
}

func (j *job) newRecord() verdicts.Record {
	return verdicts.Record{
		Format: verdicts.Format, Instance: j.Instance.ID, Model: j.Model, RunID: j.layout.RunID(), Repetition: j.repetition(),
		Basis: j.plan.basis,
	}
}

// identify returns the inputs of a job as far as they are known without a sandbox.
func (c Config) identify(ctx context.Context, j *job) verdicts.Basis {
	basis := j.plan.basis
	if s, ok := c.Sandboxes.(ImageIdentifier); ok {
		image, err := s.Identify(ctx, j.Instance)
		if err == nil { // otherwise starting the sandbox reports the error
			basis = basis.WithImage(image.ID, image.Digest, image.Arch)
		}
	}
	return basis
}

// reuse sets the record to that of the verdict with these inputs, if there is one. It
// copies a verdict from elsewhere to the job's path.
func (j *job) reuse(basis verdicts.Basis) (ok bool, err error) {
	v, ok := j.evaluator.store.decide(j, basis)
	if !ok {
		return false, nil
	}
	r := v.record
	j.taken, r.Signature = r.Signature == "", ""
	if v.path != j.paths.record {
		if ok, err = j.evaluator.store.importFiles(v, j.paths); err != nil || !ok {
			return false, err
		}
		r.Model, r.RunID, r.Repetition, r.ReusedFrom = j.Model, j.layout.RunID(), j.repetition(), v.from
		r.Basis.Editions = j.plan.basis.Editions
		for i := range r.Runs {
			r.Runs[i].Dir = "" // the files of the other runs are not copied
		}
		r.VerdictRun().Dir = j.evaluator.relativePath(j.paths.official.Dir)
		err = j.save(&r)
	}
	j.r, j.reruns, j.reused = r, 0, true
	for _, run := range r.Runs { // of earlier evaluations, too, so that a repeated mini eval makes no more
		if run.Purpose == verdicts.ForRerun && run.Class.IsFinal() {
			j.reruns++
		}
	}
	return true, err
}

// onStart adds the image and the machine of a sandbox to the record. If the image was
// unknown and there is a verdict with that image, it returns errVerdictFound.
func (j *job) onStart(info env.Info) error {
	if j.purpose != verdicts.ForVerdict {
		return nil
	}
	j.r.Basis = j.r.Basis.WithSandbox(info)
	if !j.identifyNow {
		return nil
	}
	ok, err := j.reuse(j.r.Basis)
	if ok && err == nil {
		err = errVerdictFound
	}
	return err
}

// addRun adds a test run to the record.
func (j *job) addRun(run verdicts.TestRun) {
	run.Purpose, run.Dir = j.purpose, j.evaluator.relativePath(j.files.Dir)
	for i := range j.r.Runs {
		if j.r.Runs[i].Dir == run.Dir {
			j.r.Runs[i].Dir = "" // the new run replaced its files
		}
	}
	j.r.Runs = append(j.r.Runs, run)
}

// Finish writes the record after a part of the job, and reports whether another part
// follows. After the last one it emits the verdict.
func (j *job) Finish(wait time.Duration) (more bool, err error) {
	if wait > 0 || j.stopped {
		return false, nil
	}
	if j.purpose != "" {
		err = j.endPart()
	}
	if err == nil {
		err = j.nextPart()
	}
	if err == nil && j.purpose == "" {
		j.conclude()
	}
	if err != nil {
		return false, fmt.Errorf("evaluate %s: %w", j.Instance.ID, err)
	}
	return j.purpose != "", nil
}

// endPart writes the record after the last try of a part.
func (j *job) endPart() error {
	switch j.purpose {
	case verdicts.ForRerun:
		j.reused = false
		j.reruns++
	case verdicts.WithoutSuspect:
		j.reused = false
		run := &j.r.Runs[len(j.r.Runs)-1]
		run.PatchSHA256, run.PatchBytes = verdicts.PatchHash(j.patch), len(j.patch)
		run.Key = j.r.Basis.CacheKeyWithPatch(run.PatchSHA256)
		j.setWithoutSuspect(run.Class)
	}
	return j.save(&j.r)
}

func (j *job) setWithoutSuspect(class verdicts.Class) {
	if class.IsFinal() {
		resolved := class == verdicts.Resolved
		j.r.ResolvedWithoutSuspect = &resolved
	}
}

// nextPart sets purpose, patch and files of the next part; purpose is "" if nothing is
// missing. Of the baselines, noop is expected to fail, and no patch is checked for
// suspicious files.
func (j *job) nextPart() error {
	j.purpose = ""
	extra := j.paths.extraRun(len(j.r.Runs) + 1)
	if j.baseline != NoopModel && j.reruns < j.evaluator.config.RerunFailed && j.r.Class.IsFailure() {
		j.purpose, j.patch, j.files = verdicts.ForRerun, j.Patch, extra
		return nil
	}
	if j.triedWithout || j.baseline != "" || !j.r.Class.IsFinal() || j.r.ResolvedWithoutSuspect != nil {
		return nil
	}
	j.triedWithout = true
	suspect := tampering.Files(tampering.CheckPatch(j.Patch, j.Instance))
	if len(suspect) == 0 {
		return nil
	}
	remaining, class := tampering.RemoveFiles(j.Patch, suspect), verdicts.Empty
	if len(remaining) > 0 {
		class = j.evaluator.store.class(j.r.Basis.CacheKeyWithPatch(verdicts.PatchHash(remaining)))
	}
	if class == "" {
		j.purpose, j.patch, j.files = verdicts.WithoutSuspect, remaining, extra
		return nil
	}
	j.setWithoutSuspect(class)
	return j.save(&j.r)
}

// save derives the record's class from its runs and writes the record. If this
// session ran the tests and the verdict is the user's, it also adds the record to the
// cache.
func (j *job) save(r *verdicts.Record) error {
	e := j.evaluator
	r.DeriveClass()
	r.Flags = nil
	if j.baseline == "" {
		r.Flags = tampering.CheckPatch(j.Patch, j.Instance)
		if run := r.VerdictRun(); run != nil {
			r.Flags = append(r.Flags, run.Flags...)
		}
	}
	r.Gold, r.Noop = "", ""
	e.store.setBaseline(r, j.Instance)
	cacheErr, err := e.store.write(j.paths, *r, !j.taken, j.ranTests)
	if cacheErr != nil {
		// Not fatal: the run folder has the verdict, but other runs cannot reuse it.
		e.cacheWarning.Do(func() {
			e.config.Log.Emit(runner.Event{Type: runner.Warning, Text: "write verdict to the cache: " + cacheErr.Error()})
		})
	}
	return err
}

// conclude emits the verdict and keeps it for the summaries.
func (j *job) conclude() {
	e := j.evaluator
	event := j.event(runner.Event{Type: runner.Verdict, Verdict: string(j.r.Class), Text: j.r.Reason})
	if !j.reused {
		event.Elapsed = j.r.Seconds
	}
	e.config.Log.Emit(event)
	e.mu.Lock()
	defer e.mu.Unlock()
	r := j.r
	j.record = &r
}

// event returns an event with the instance, the repetition and the model of the job.
func (j *job) event(e runner.Event) runner.Event {
	e.Instance, e.Repetition, e.ResultModel = j.Instance.ID, j.Repetition, j.Model
	return e
}

// relativePath returns a slash-separated path relative to the run folder, which has it.
func (e *Evaluator) relativePath(path string) string {
	rel, _ := filepath.Rel(e.config.Folder.Dir, path)
	return filepath.ToSlash(rel)
}
