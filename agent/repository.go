package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// diffTimeout bounds taking the diff after an attempt has ended; it is on its
// own clock, since the attempt's may be over.
const diffTimeout = 2 * time.Minute

// scrub takes out of the repository what could show the model more than HEAD
// does, and records the proof. An attempt on a repository that is not honest is
// no result; a folder of the user's is never touched.
func (r *run) scrub(ctx context.Context) error {
	if !r.cfg.Scrub {
		return nil
	}
	r.began(Scrubbing, "")
	r.Events.Publish(events.ScrubStarted{})
	proof, err := worktree.Scrub(ctx, r.Environment)
	_, lost := errors.AsType[*env.Error](err)
	switch {
	case errors.Is(err, worktree.ErrNoRepository):
		return nil // open says so
	case errors.Is(err, worktree.ErrNotDisposable):
		r.warnings = append(r.warnings, "the repository was not scrubbed: "+err.Error())
		return nil
	case lost || err != nil && ctx.Err() != nil:
		return orCause(ctx, err)
	}
	rec := scrubRecord(proof, err)
	if p := r.info.Prepared; p != nil {
		rec.ImageWait = trajectories.Seconds(p.Waited)
	}
	if _, err := r.record(trajectories.TypeScrub, rec); err != nil {
		return err
	}
	if err == nil && !proof.Holds() {
		err = fmt.Errorf("scrub repository: %d commits, %d objects, %d refs and %d remotes are left that are not HEAD's",
			proof.StrayCommits, proof.StrayObjects, proof.StrayRefs, proof.Remotes)
	}
	if err != nil {
		e := &env.Error{
			Status: env.SetupFailed, Op: "make the repository honest",
			Hint: "agent.scrub: false leaves it as it is", Err: err,
		}
		if errors.Is(err, worktree.ErrNoRoom) {
			e.Hint = "make room on the disks that are named, or give /tmp more with environment.tmpfs"
		}
		return e
	}
	if proof.Submodules > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d submodule repositories were not scrubbed", proof.Submodules))
	}
	return nil
}

func scrubRecord(p worktree.Proof, err error) trajectories.Scrub {
	rec := trajectories.Scrub{
		OK: err == nil && p.Holds(), Head: p.Head, Method: p.Method,
		RefsRemoved: p.RefsRemoved, ObjectsRemoved: p.ObjectsRemoved,
		Objects: p.Objects, Commits: p.Commits, Tags: p.Tags,
		StrayCommits: p.StrayCommits, StrayObjects: p.StrayObjects, StrayRefs: p.StrayRefs, Remotes: p.Remotes,
		Submodules: p.Submodules, Duration: trajectories.Seconds(p.Duration), Prepared: p.Prepared,
	}
	if err != nil {
		rec.Error = err.Error()
	}
	return rec
}

// open remembers the files as they are, which diffs are against. In a folder of
// the user's the next session has to know them too; and that they cannot be
// remembered costs no more than the diff there.
func (r *run) open(ctx context.Context) error {
	if r.cfg.NoTree {
		return nil
	}
	cfg := worktree.Config{Exclude: r.cfg.PatchExclude, MaxPatch: r.cfg.MaxPatch}
	if r.Past != nil && r.Past.Rebuild == nil {
		cfg.Start = r.Past.Files
	}
	tree, err := worktree.Open(ctx, r.Environment, cfg)
	_, lost := errors.AsType[*env.Error](err)
	switch {
	case lost || err != nil && ctx.Err() != nil:
		return orCause(ctx, err)
	case err != nil && r.info.Disposable:
		return &env.Error{Status: env.SetupFailed, Op: "open repository", Hint: hintOf(err, "commit what is changed in the repository of the image, or ignore it"), Err: err}
	case err != nil:
		tree = &worktree.Tree{Missing: "nothing to take a diff against (" + err.Error() + ")"}
	case tree.Base != "" && cfg.Start == nil && !r.info.Disposable:
		s := tree.Start()
		rec := trajectories.Start{Base: s.Base, Tree: s.Tree, Patch: s.Patch, Ignored: s.Ignored, Left: s.Left}
		if _, err := r.record(trajectories.TypeStart, rec); err != nil {
			return err
		}
	}
	r.tree = tree
	return nil
}

// hintOf is what to do about a repository of which no tree can be taken: about
// the disk, if that is full.
func hintOf(err error, other string) string {
	if errors.Is(err, worktree.ErrNoRoom) {
		return "give the sandbox a disk with room, such as a larger environment.shm_size"
	}
	return other
}

// orCause is why ctx ended, if it did; else err.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// submit decides what the agent's submission is, where a patch is expected:
// its text, if git apply takes it on the files of the start; nothing yet, the first time
// that git does not; else the working diff.
func (r *run) submit(ctx context.Context, a protocol.Action, text []byte) error {
	r.handedIn = &a
	asIs := &Submitted{Patch: text, Source: trajectories.SourceSubmitted}
	workingDiff := &Submitted{Source: trajectories.SourceWorktree}
	if r.cfg.Submission != SubmissionPatch || r.tree.Base == "" {
		return asIs
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return workingDiff
	}
	r.began(Closing, "")
	start := time.Now()
	found, err := r.tree.Check(ctx, text)
	took := trajectories.Seconds(time.Since(start))
	if _, lost := errors.AsType[*env.Error](err); lost || err != nil && ctx.Err() != nil {
		return orCause(ctx, err)
	}
	rec := trajectories.Check{
		Bytes: len(text), Applies: err == nil && found.Refusal == "", Refusal: found.Refusal,
		Returned: found.Refusal != "" && !r.returned, Mended: found.Mended, Remade: found.Remade, Tree: found.Tree, Duration: took,
	}
	if err != nil {
		rec.Error = err.Error()
	}
	if _, err := r.record(trajectories.TypeCheck, rec); err != nil {
		return err
	}
	switch {
	case err != nil:
		r.warnings = append(r.warnings, "the submission was taken unchecked: "+err.Error())
		return asIs
	case rec.Applies:
		r.submitted = found.Tree
		return &Submitted{Patch: found.Patch, Source: trajectories.SourceSubmitted}
	case rec.Returned:
		r.returned = true
		return r.malformed(a, found.Refusal)
	}
	r.warnings = append(r.warnings, "the submission does not apply, so that the working diff counts instead: "+found.Refusal)
	return workingDiff
}

// malformed tells the model what git said of its patch.
func (r *run) malformed(a protocol.Action, refusal string) *Feedback {
	text := "The work is not handed in yet: what followed the submit line is no patch that git apply takes on a clean checkout. It says:\n\n" +
		refusal + "\n\nMake the patch anew with git diff, at the top of the repository and unedited, and hand it in again. " +
		"If that one does not apply either, the state of the files counts instead."
	f := &Feedback{Reason: "MalformedPatch"}
	f.add(trajectories.CauseMalformedPatch, r.protocol.Answer(a, text))
	return f
}

// keepDiff records the working diff and gives it its place in the outcome: the
// submission where a limit ended the attempt or the agent has none, a partial
// patch where the attempt does not count. It also sees to it that a submission
// can travel as text.
func (r *run) keepDiff(ctx context.Context, out *trajectories.Outcome) {
	if r.tree == nil || !sandboxLives(out) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	r.began(Closing, "")
	start := time.Now()
	diff, err := r.tree.Diff(ctx)
	r.recordDiff(diff, err, trajectories.Seconds(time.Since(start)), out)
	wanted := out.Class == trajectories.Limit && r.cfg.Autosubmit || out.Source == trajectories.SourceWorktree
	if err == nil && wanted && len(diff.Patch) == 0 && diff.OmittedCount > 0 {
		err = errors.New("all that changed was left out: " + omitted(diff))
	}
	switch {
	case err != nil && wanted:
		// What was to be submitted is not known: no result, and not an empty one.
		lost, ok := errors.AsType[*env.Error](err)
		if !ok {
			lost = &env.Error{Status: env.DiffFailed, Op: "take the working diff after " + out.ExitStatus, Hint: hintOf(err, "look at the files that the error names; agent.max_patch_bytes bounds a patch"), Err: err}
			err = lost
		}
		out.Class, out.ExitStatus, out.Source = trajectories.Environment, string(lost.Status), ""
		out.Error, out.Hint = err.Error(), lost.Hint
	case err != nil:
	case wanted:
		out.Submission, out.Source = diff.Patch, trajectories.SourceWorktree
		out.Autosubmitted = out.Class == trajectories.Limit
	case !out.Class.Counts() || out.Class == trajectories.Limit:
		out.PartialPatch = diff.Patch
	default:
		out.Differs = r.submitted != "" && diff.Tree != "" && r.submitted != diff.Tree
	}
	r.asText(ctx, out)
}

// recordDiff keeps the diff, and warns of what it lacks.
func (r *run) recordDiff(diff worktree.Diff, err error, took trajectories.Seconds, out *trajectories.Outcome) {
	rec := trajectories.Diff{
		Base: r.tree.Base, Start: r.tree.Start().Tree, Patch: diff.Patch, Exact: diff.Exact, Tree: diff.Tree, Problem: diff.Problem,
		OmittedCount: diff.OmittedCount, Duration: took,
	}
	for _, o := range diff.Omitted {
		rec.Omitted, rec.OmittedReasons = append(rec.Omitted, o.Name), append(rec.OmittedReasons, o.Reason)
	}
	switch {
	case err != nil:
		rec.Error = err.Error()
		out.Warnings = append(out.Warnings, "the working diff could not be taken: "+err.Error())
	case r.tree.Base != "" && !diff.Exact:
		out.Warnings = append(out.Warnings, "the working diff does not give the same files when it is applied: "+diff.Problem)
	}
	if diff.OmittedCount > 0 {
		out.Warnings = append(out.Warnings, "left out of the working diff: "+omitted(diff))
	}
	if _, err := r.record(trajectories.TypeDiff, rec); err != nil {
		out.Warnings = append(out.Warnings, "the working diff could not be recorded: "+err.Error())
	}
}

// omitted names the first of what a diff lacks, and why.
func omitted(diff worktree.Diff) string {
	var names []string
	for _, o := range diff.Omitted[:min(3, len(diff.Omitted))] {
		names = append(names, o.String())
	}
	text := strings.Join(names, ", ")
	if more := diff.OmittedCount - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// asText makes a patch of UTF-8 of a submission that was not checked and is
// something else.
func (r *run) asText(ctx context.Context, out *trajectories.Outcome) {
	if utf8.Valid(out.Submission) {
		return
	}
	found, err := r.tree.Check(ctx, out.Submission)
	if err == nil && found.Refusal != "" {
		err = errors.New(found.Refusal)
	}
	if err != nil {
		out.Warnings = append(out.Warnings,
			"the submission is not UTF-8 and could not be turned into a binary patch: "+err.Error())
		return
	}
	out.Submission = found.Patch
}
