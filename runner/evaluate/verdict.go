package evaluate

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/suspect"
	"github.com/minibench/mini/runner/verdicts"
)

// tryPause is waited before a failure of the machine is tried again, times the
// tries so far.
const tryPause = time.Second

// superseded stands for a class in the event of a patch that was not looked at.
const superseded = "superseded"

// judge brings a job to its verdict. The error is about the folder, or the
// cause of ctx; then there is no record of what was not finished.
func (e *Evaluator) judge(ctx context.Context, j *job) error {
	// Of two patches under one name the later counts, whichever is begun first.
	defer e.lockFor(j.paths.record)()
	if e.superseded(j) {
		e.config.Log.Emit(runner.Event{
			Type: runner.Verdict, Instance: j.Instance.ID, Sample: j.Sample, ResultModel: j.Model,
			Verdict: superseded, Text: "a later patch has taken its place",
		})
		return nil
	}
	r, err := e.verdict(ctx, j)
	if err != nil {
		return err
	}
	told := runner.Event{
		Type: runner.Verdict, Instance: j.Instance.ID, Sample: j.Sample, ResultModel: j.Model, Verdict: string(r.Class), Text: r.Reason,
	}
	if !j.reused {
		told.Elapsed = r.Seconds
	}
	e.config.Log.Emit(told)
	e.mu.Lock()
	defer e.mu.Unlock()
	j.record = &r
	if time.Since(e.written) < flushInterval {
		return nil
	}
	_, err = e.summaries()
	return err
}

func (e *Evaluator) verdict(ctx context.Context, j *job) (verdicts.Record, error) {
	if j.empty() {
		r := e.newRecord(j, j.plan.basis)
		r.Class, r.Reason = verdicts.Empty, "the prediction has no patch"
		if err := e.store.clear(j.paths); err != nil { // files of an earlier patch would speak for this one
			return r, err
		}
		return r, e.store.write(j.paths, r)
	}
	defer e.lockFor(j.plan.basis.RowSHA256 + j.plan.basis.PatchSHA256)()
	r, err := e.reuse(ctx, j)
	if err == nil && !r.Class.Final() {
		r, err = e.first(ctx, j)
	}
	if err == nil {
		err = e.again(ctx, j, &r)
	}
	if err == nil {
		err = e.withoutSuspect(ctx, j, &r)
	}
	return r, err
}

func (e *Evaluator) newRecord(j *job, basis verdicts.Basis) verdicts.Record {
	return verdicts.Record{Format: verdicts.Format, Instance: j.Instance.ID, Model: j.Model, RunID: j.run.ID(), Sample: j.further(), Basis: basis}
}

// reuse finds a verdict that holds for the job. Its class is empty where there
// is none.
func (e *Evaluator) reuse(ctx context.Context, j *job) (verdicts.Record, error) {
	basis, own, holds := e.held(ctx, j)
	if holds {
		if _, ours := e.store.own(j.paths.record); ours {
			j.reused = true
			return own, nil
		}
		r, err := e.gradeForeign(ctx, j, own)
		if err != nil || r.Class.Final() {
			return r, err
		}
	}
	return e.adopt(j, basis.Key)
}

// gradeForeign grades the log of a record that came with the folder. Its class is
// empty where that log gives no verdict.
func (e *Evaluator) gradeForeign(ctx context.Context, j *job, own verdicts.Record) (verdicts.Record, error) {
	run := *own.VerdictRun()
	run.Dir = e.relative(j.paths.official.Dir)
	// Nothing else that it says is believed.
	own = verdicts.Record{Format: verdicts.Format, Instance: own.Instance, Model: own.Model, RunID: j.run.ID(), Sample: j.further(), Basis: own.Basis, Runs: []verdicts.Attempt{run}}
	again := &Again{dir: e.store.root, editions: e.config.Editions, now: e.began, reading: e.reading}
	g, err := again.Judge(ctx, own, j.Instance)
	if ctx.Err() != nil {
		return verdicts.Record{}, context.Cause(ctx)
	}
	if err != nil {
		return verdicts.Record{}, nil //nolint:nilerr // the log cannot be graded: the tests are run
	}
	for path, report := range g.Reports {
		if err := writeFile(e.store.root, path, report); err != nil {
			return verdicts.Record{}, err
		}
	}
	r := g.judged
	j.reused, r.ForeignLog = r.Class.Final(), true
	return r, e.enter(j, &r)
}

// held is the basis of a job as far as it is known without a sandbox, and the
// record at the job's own place, where that has a verdict that holds. With
// Config.TrustLogs it may be a foreign one, with a log that can be graded.
func (e *Evaluator) held(ctx context.Context, j *job) (basis verdicts.Basis, own verdicts.Record, holds bool) {
	basis = j.plan.basis
	if s, ok := e.config.Sandboxes.(Identifying); ok {
		image, err := s.Identify(ctx, j.Instance)
		if err == nil { // else the start will say so
			basis = basis.InImage(image.ID, image.Digest, image.Arch)
		}
	}
	own, ok := e.store.own(j.paths.record)
	if !ok && e.config.TrustLogs {
		own = e.store.foreign[j.paths.record].Clone()
		switch own.VerdictClass() {
		case verdicts.Resolved, verdicts.Unresolved, verdicts.Error:
			ok = own.VerdictRun() != nil
		}
	}
	if ok && basis.Key == "" {
		// The image is not here now, and was when the verdict was given.
		basis = basis.InImage(own.Basis.ImageID, own.Basis.ImageDigest, own.Basis.ImageArch)
	}
	holds = ok && own.Instance == j.Instance.ID && own.Model == j.Model && basis.Key != "" && own.Basis.Key == basis.Key && own.Class.Final() && complete(e.store.root, own, j.paths.official)
	return basis, own, holds
}

// adopt takes over the verdict of another record with this key. Its class is
// empty where there is none.
func (e *Evaluator) adopt(j *job, key string) (verdicts.Record, error) {
	found, ok := e.store.known(key)
	if !ok || found.files.Dir == j.paths.official.Dir || found.record.Instance != j.Instance.ID {
		return verdicts.Record{}, nil
	}
	ok, err := e.store.take(found, key, j.paths)
	if !ok || err != nil {
		return verdicts.Record{}, err
	}
	r := found.record
	j.reused, j.vouched = true, found.path == ""
	r.Model, r.RunID, r.Sample, r.Reused = j.Model, j.run.ID(), j.further(), found.from
	r.Basis.Editions = j.plan.basis.Editions
	official := r.VerdictRun()
	for i := range r.Runs {
		r.Runs[i].Dir = "" // the other runs' files stay where they are
	}
	official.Dir = e.relative(j.paths.official.Dir)
	return r, e.enter(j, &r)
}

// first makes the run of the verdict.
func (e *Evaluator) first(ctx context.Context, j *job) (verdicts.Record, error) {
	r := e.newRecord(j, j.plan.basis)
	var known verdicts.Record
	started := func(info env.Info) (err error) {
		r.Basis = r.Basis.InSandbox(info)
		known, err = e.adopt(j, r.Basis.Key)
		if err == nil && known.Class.Final() {
			err = errKnown
		}
		return err
	}
	if err := e.store.clear(j.paths); err != nil {
		return r, err
	}
	err := e.tries(ctx, j, &r, verdicts.ForVerdict, j.Patch, j.paths.official, started)
	if errors.Is(err, errKnown) {
		return known, nil
	}
	if err != nil {
		return r, err
	}
	j.vouched = true
	return r, e.enter(j, &r)
}

// again runs what failed, until it ends otherwise once or has failed often
// enough.
func (e *Evaluator) again(ctx context.Context, j *job, r *verdicts.Record) error {
	if j.baseline == noop { // which is to fail
		return nil
	}
	for n := reruns(r); n < e.config.RerunFailed && r.Class.Failed(); n++ {
		if err := e.tries(ctx, j, r, verdicts.ForStability, j.Patch, j.paths.run(len(r.Runs)+1), ignore); err != nil {
			return err
		}
		j.reused = false
		if err := e.enter(j, r); err != nil {
			return err
		}
	}
	return nil
}

// reruns counts those that proved something, of earlier sessions too: the same
// command again asks for no more of them.
func reruns(r *verdicts.Record) int {
	n := 0
	for _, a := range r.Runs {
		if a.Purpose == verdicts.ForStability && a.Class.Final() {
			n++
		}
	}
	return n
}

func ignore(env.Info) error { return nil }

// withoutSuspect looks what becomes of the verdict without the hunks that are
// flagged. The row's own solution is above suspicion.
func (e *Evaluator) withoutSuspect(ctx context.Context, j *job, r *verdicts.Record) error {
	if j.baseline != "" || !r.Class.Final() || r.ResolvedWithoutSuspect != nil {
		return nil
	}
	found := suspect.Patch(j.Patch, j.Instance)
	if len(found) == 0 {
		return nil
	}
	rest := suspect.Without(j.Patch, suspect.Files(found))
	class := verdicts.Empty
	if len(rest) > 0 {
		class = e.store.class(r.Basis.KeyWithPatch(verdicts.PatchHash(rest)))
	}
	if class == "" {
		if err := e.tries(ctx, j, r, verdicts.WithoutSuspect, rest, j.paths.run(len(r.Runs)+1), ignore); err != nil {
			return err
		}
		j.reused = false
		a := &r.Runs[len(r.Runs)-1]
		a.PatchSHA256, a.PatchBytes, a.Key = verdicts.PatchHash(rest), len(rest), r.Basis.KeyWithPatch(verdicts.PatchHash(rest))
		class = a.Class
	}
	if class.Final() {
		resolved := class == verdicts.Resolved
		r.ResolvedWithoutSuspect = &resolved
	}
	return e.enter(j, r)
}

// tries makes a run, and more of it while the machine fails. All of them are
// added to the record.
func (e *Evaluator) tries(
	ctx context.Context, j *job, r *verdicts.Record, why verdicts.Purpose, patch []byte, files grade.Files, started func(env.Info) error,
) error {
	t := &trial{
		root: e.store.root, config: e.config, instance: j.Instance, plan: j.plan, files: files,
		patch: patch, unpatched: j.baseline == noop, started: started, reading: e.reading,
	}
	for try := 1; ; try++ {
		n := len(r.Runs) + 1
		e.config.Log.Emit(runner.Event{
			Type: runner.EvaluationAttempt, Instance: j.Instance.ID, Sample: j.Sample, ResultModel: j.Model, Attempt: n, Text: string(why),
		})
		a, err := t.run(ctx)
		if err != nil {
			return err
		}
		a.Purpose, a.Dir, j.ran = why, e.relative(files.Dir), true
		for i := range r.Runs {
			if r.Runs[i].Dir == a.Dir {
				r.Runs[i].Dir = "" // its files were replaced
			}
		}
		r.Runs = append(r.Runs, a)
		if a.Class != verdicts.Infrastructure || a.Permanent || try >= e.config.MaxTries {
			return nil
		}
		e.config.Log.Emit(runner.Event{
			Type: runner.Verdict, Instance: j.Instance.ID, Sample: j.Sample, ResultModel: j.Model, Attempt: n,
			Verdict: string(a.Class), Text: a.Reason, Elapsed: a.Seconds, Again: true,
		})
		if err := pause(ctx, time.Duration(try)*tryPause); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enter derives a record's class from its runs, and writes it.
func (e *Evaluator) enter(j *job, r *verdicts.Record) error {
	r.Conclude()
	r.Flags = nil
	if j.baseline == "" {
		r.Flags = suspect.Patch(j.Patch, j.Instance)
		if a := r.VerdictRun(); a != nil {
			r.Flags = append(r.Flags, a.Flags...)
		}
	}
	r.Gold = e.store.class(r.Basis.KeyWithPatch(verdicts.PatchHash([]byte(j.Instance.Patch))))
	r.Noop = e.store.class(r.Basis.KeyWithPatch(verdicts.NoPatch))
	if err := e.store.write(j.paths, *r); err != nil || !j.ran || !j.vouched {
		return err
	}
	if err := e.store.share(j.paths, *r); err != nil {
		// The verdict is safe; others will have to run it again.
		e.unshared.Do(func() {
			e.config.Log.Emit(runner.Event{Type: runner.Warning, Text: "verdicts cannot be put into the cache: " + err.Error()})
		})
	}
	return nil
}

// relative is a path within the folder of the run, with slashes.
func (e *Evaluator) relative(path string) string {
	rel, err := filepath.Rel(e.config.Folder.Dir(), path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}
