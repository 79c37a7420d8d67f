package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Repository takes care of the repository in a sandbox, as package worktree does with
// git.
type Repository interface {
	Scrub(ctx context.Context, sandbox env.Environment) (worktree.ScrubReport, error)
	Open(ctx context.Context, sandbox env.Environment, cfg worktree.Config) (*worktree.Tree, error)
}

// GitRepository is the Repository with git in the sandbox.
type GitRepository struct{}

// Scrub implements Repository.
func (GitRepository) Scrub(ctx context.Context, sandbox env.Environment) (worktree.ScrubReport, error) {
	return worktree.Scrub(ctx, sandbox)
}

// Open implements Repository.
func (GitRepository) Open(ctx context.Context, sandbox env.Environment, cfg worktree.Config) (*worktree.Tree, error) {
	return worktree.Open(ctx, sandbox, cfg)
}

// scrub removes everything outside the history of HEAD from the repository and
// records the result. If the scrub fails or anything is left, the attempt
// fails. If the repository is in a folder of the user, it is left unchanged and
// the outcome has a warning.
func (r *run) scrub(ctx context.Context) error {
	if !r.cfg.Scrub {
		return nil
	}
	r.notify(events.PhaseStarted{Phase: events.PhaseScrubbing})
	report, err := r.Repository.Scrub(ctx, r.Environment)
	_, isEnvErr := errors.AsType[*env.Error](err)
	switch {
	case errors.Is(err, worktree.ErrNoRepository):
		return nil // openWorktree reports this case
	case errors.Is(err, worktree.ErrNotDisposable):
		r.warnings = append(r.warnings, "the repository was not scrubbed: "+err.Error())
		return nil
	case isEnvErr || err != nil && ctx.Err() != nil:
		return causeOrErr(ctx, err)
	}
	rec := scrubRecord(report, err)
	if p := r.info.Prepared; p != nil {
		rec.ImageWait = trajectories.Seconds(p.Waited)
	}
	if _, err := r.record(trajectories.TypeScrub, rec); err != nil {
		return err
	}
	if err == nil && !report.IsClean() {
		err = fmt.Errorf("scrub repository: %d commits, %d objects, %d refs and %d remotes outside the history of HEAD are left",
			report.StrayCommits, report.StrayObjects, report.StrayRefs, report.Remotes)
	}
	if err != nil {
		e := &env.Error{
			Status: setupStatus(err), Op: "prepare repository",
			Hint: "set agent.scrub: false to leave it unchanged", Err: err,
		}
		if errors.Is(err, worktree.ErrNoSpace) {
			e.Hint = "free space on the disks named above, or enlarge /tmp with environment.tmpfs"
		}
		return e
	}
	if report.Submodules > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d submodule repositories were not scrubbed", report.Submodules))
	}
	return nil
}

func scrubRecord(r worktree.ScrubReport, err error) trajectories.Scrub {
	rec := trajectories.Scrub{
		OK: err == nil && r.IsClean(), Head: r.Head, Method: r.Method,
		RefsRemoved: r.RefsRemoved, ObjectsRemoved: r.ObjectsRemoved,
		Objects: r.Objects, Commits: r.Commits, Tags: r.Tags,
		StrayCommits: r.StrayCommits, StrayObjects: r.StrayObjects, StrayRefs: r.StrayRefs, Remotes: r.Remotes,
		Submodules: r.Submodules, Duration: trajectories.Seconds(r.Duration), Prepared: r.Prepared,
	}
	if err != nil {
		rec.Error = err.Error()
	}
	return rec
}

// openWorktree reads the state of the files, which diffs are taken against. In
// a folder of the user, it records the state for later sessions, and after a
// failure the attempt runs without a diff; elsewhere a failure ends the
// attempt.
func (r *run) openWorktree(ctx context.Context) error {
	if r.cfg.SkipWorktree {
		return nil
	}
	cfg := worktree.Config{Exclude: r.cfg.PatchExclude, MaxPatch: r.cfg.MaxPatch}
	if r.Resume != nil && r.Resume.Rebuild == nil {
		cfg.Start = r.Resume.startState()
	}
	tree, err := r.Repository.Open(ctx, r.Environment, cfg)
	_, isEnvErr := errors.AsType[*env.Error](err)
	switch {
	case isEnvErr || err != nil && ctx.Err() != nil:
		return causeOrErr(ctx, err)
	case err != nil && r.info.Disposable:
		return &env.Error{
			Status: setupStatus(err), Op: "open repository", Err: err,
			Hint: hintFor(err, "commit or ignore the changed files in the image's repository"),
		}
	case err != nil:
		tree = &worktree.Tree{Missing: "nothing to take a diff against (" + err.Error() + ")"}
	case tree.Base != "" && cfg.Start == nil && !r.info.Disposable:
		s := tree.Start()
		rec := trajectories.StartState{Base: s.Base, Tree: s.Tree, Patch: s.Patch, Ignored: s.Ignored, OtherFiles: s.LeftOut, Submodules: s.Submodules}
		if _, err := r.record(trajectories.TypeStartState, rec); err != nil {
			return err
		}
	}
	r.tree = tree
	return nil
}

// setupStatus returns the status of an error of the repository.
func setupStatus(err error) env.Status {
	if errors.Is(err, worktree.ErrRefused) {
		return env.RepositoryRefused
	}
	return env.SetupFailed
}

// hintFor returns the hint for an error of the repository: fallback, unless the
// disk is full.
func hintFor(err error, fallback string) string {
	if errors.Is(err, worktree.ErrNoSpace) {
		return "give the sandbox more disk space, for example a larger environment.shm_size"
	}
	return fallback
}

// diffTimeout bounds taking the diff. That time does not count against the
// attempt's limit, which may be reached already.
const diffTimeout = 2 * time.Minute

// addWorkingDiff records the working diff and adds it to the outcome: as the
// submission if a limit ended the attempt and Config.Autosubmit is set, or if
// the working diff is to be submitted; else as the partial patch if the attempt
// ended without a submission. If a diff to submit cannot be taken, the outcome
// becomes an error of the environment. addWorkingDiff also converts a
// submission that is not UTF-8.
func (r *run) addWorkingDiff(ctx context.Context, out *trajectories.Outcome) {
	if r.tree == nil || !isSandboxAlive(out) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	r.notify(events.PhaseStarted{Phase: events.PhaseClosing})
	start := time.Now()
	diff, err := r.tree.Diff(ctx)
	r.recordDiff(diff, err, trajectories.Seconds(time.Since(start)), out)
	submitDiff := out.Class == trajectories.Limit && r.cfg.Autosubmit || out.Source == trajectories.SourceWorktree
	if err == nil && submitDiff && len(diff.Patch) == 0 && diff.OmittedCount > 0 {
		err = errors.New("all changes were left out: " + describeOmitted(diff))
	}
	switch {
	case err != nil && submitDiff:
		// Without a diff the submission is unknown. An empty one would be
		// wrong.
		envErr, ok := errors.AsType[*env.Error](err)
		if !ok {
			envErr = &env.Error{
				Status: env.DiffFailed, Op: "take the working diff after " + out.ExitStatus, Err: err,
				Hint: hintFor(err, "check the files named in the error, or raise agent.max_patch_bytes"),
			}
			err = envErr
		}
		out.Class, out.ExitStatus, out.Source = environmentClass(envErr.Status), string(envErr.Status), ""
		out.Error, out.Hint = err.Error(), envErr.Hint
	case err != nil:
	case submitDiff:
		out.Submission, out.Source = diff.Patch, trajectories.SourceWorktree
		out.Autosubmitted = out.Class == trajectories.Limit
	case !out.Class.IsResult() || out.Class == trajectories.Limit:
		out.PartialPatch = diff.Patch
	default:
		out.DiffersFromWorktree = r.submittedTree != "" && diff.Tree != "" && r.submittedTree != diff.Tree
	}
	r.ensureUTF8(ctx, out)
}

// recordDiff records the diff and warns if it is missing, inexact or
// incomplete.
func (r *run) recordDiff(diff worktree.Diff, err error, duration trajectories.Seconds, out *trajectories.Outcome) {
	rec := trajectories.Diff{
		Base: r.tree.Base, Start: r.tree.Start().Tree, Patch: diff.Patch, Exact: diff.Exact, Tree: diff.Tree, VerifyError: diff.Problem,
		OmittedCount: diff.OmittedCount, Duration: duration,
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
		out.Warnings = append(out.Warnings, "left out of the working diff: "+describeOmitted(diff))
	}
	if _, err := r.record(trajectories.TypeDiff, rec); err != nil {
		out.Warnings = append(out.Warnings, "the working diff could not be recorded: "+err.Error())
	}
}

// describeOmitted lists the first files that a diff leaves out, and why.
func describeOmitted(diff worktree.Diff) string {
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

// ensureUTF8 converts a submission that is not UTF-8 to a binary patch.
func (r *run) ensureUTF8(ctx context.Context, out *trajectories.Outcome) {
	if utf8.Valid(out.Submission) {
		return
	}
	checked, err := r.tree.Check(ctx, out.Submission)
	if err == nil && checked.GitError != "" {
		err = errors.New(checked.GitError)
	}
	if err != nil {
		out.Warnings = append(out.Warnings,
			"the submission is not UTF-8 and could not be converted to a binary patch: "+err.Error())
		return
	}
	out.Submission = checked.Patch
}

// SubmitMarkers mark a command's output as a submission if one of them is its
// first line. Older prompts of mini-swe-agent use the second one.
var SubmitMarkers = []string{"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT"}

// IsBareSubmission reports whether a command only prints a marker: it submits,
// and does nothing else.
func IsBareSubmission(command string) bool {
	words := strings.Fields(command)
	if len(words) != 2 || words[0] != "echo" || strings.Contains(strings.TrimSpace(command), "\n") {
		return false
	}
	marker := words[1]
	if n := len(marker) - 1; n > 0 && (marker[0] == '"' || marker[0] == '\'') && marker[n] == marker[0] {
		marker = marker[1:n]
	}
	return slices.Contains(SubmitMarkers, marker)
}

// pythonSpace are the single-byte characters that Python's str.lstrip removes.
const pythonSpace = " \t\n\v\f\r\x1c\x1d\x1e\x1f"

// ParseSubmission returns the text that a command submits; false if it submits
// nothing. A command submits if its exit code is 0 and the first line of its
// output that is not blank, without white space at its ends, is a marker. The
// submission is everything after that line, unchanged. Truncated output is
// never a submission.
func ParseSubmission(r env.Result) ([]byte, bool) {
	if r.ExitCode != 0 || r.TimedOut || r.Truncated {
		return nil, false
	}
	first, rest, _ := bytes.Cut(bytes.TrimLeft(r.Output, pythonSpace), []byte("\n"))
	first = bytes.Trim(first, pythonSpace)
	for _, m := range SubmitMarkers {
		if string(first) == m {
			return rest, true
		}
	}
	return nil, false
}

// submit returns the Submitted or Feedback for a submitted text. If a patch is
// expected and there is a repository, the text counts if git apply accepts it
// on the files at the start, or if the check itself fails. The first rejected
// patch is sent back to the model; instead of a further one, the working diff
// is submitted. An empty text also submits the working diff.
func (r *run) submit(ctx context.Context, a protocol.Action, text []byte) error {
	r.submitAction = &a
	unchanged := &Submitted{Patch: text, Source: trajectories.SourceSubmitted}
	workingDiff := &Submitted{Source: trajectories.SourceWorktree}
	if r.cfg.Submission != SubmissionPatch || r.tree.Base == "" {
		return unchanged
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return workingDiff
	}
	r.notify(events.PhaseStarted{Phase: events.PhaseClosing})
	start := time.Now()
	checked, err := r.tree.Check(ctx, text)
	duration := trajectories.Seconds(time.Since(start))
	if _, isEnvErr := errors.AsType[*env.Error](err); isEnvErr || err != nil && ctx.Err() != nil {
		return causeOrErr(ctx, err)
	}
	rec := trajectories.PatchCheck{
		Bytes: len(text), Applies: err == nil && checked.GitError == "", GitError: checked.GitError,
		ReportedToModel: checked.GitError != "" && !r.patchReturned, NewlineAdded: checked.NewlineAdded, Regenerated: checked.Regenerated, Tree: checked.Tree, Duration: duration,
	}
	if err != nil {
		rec.Error = err.Error()
	}
	if _, err := r.record(trajectories.TypePatchCheck, rec); err != nil {
		return err
	}
	switch {
	case err != nil:
		r.warnings = append(r.warnings, "the submission was accepted without a check: "+err.Error())
		return unchanged
	case rec.Applies:
		r.submittedTree = checked.Tree
		return &Submitted{Patch: checked.Patch, Source: trajectories.SourceSubmitted}
	case rec.ReportedToModel:
		r.patchReturned = true
		return r.malformedPatch(a, checked.GitError)
	}
	r.warnings = append(r.warnings, "the submission does not apply; the working diff is submitted instead: "+checked.GitError)
	return workingDiff
}

// malformedPatch returns the Feedback that tells the model why git rejected its
// patch.
func (r *run) malformedPatch(a protocol.Action, gitErr string) *Feedback {
	text := "The work is not handed in yet: what followed the submit line is no patch that git apply takes on a clean checkout. It says:\n\n" +
		gitErr + "\n\nMake the patch anew with git diff, at the top of the repository and unedited, and hand it in again. " +
		"If that one does not apply either, the state of the files counts instead."
	return newFeedback("MalformedPatch", trajectories.CauseMalformedPatch, r.protocol.ResultMessage(a, text))
}
