package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/repository"
)

// ScrubReport is what Scrub removed and what is left.
type ScrubReport = repository.ScrubReport

// scrubTime is much longer than the scrub of several gigabytes takes.
const scrubTime = 10 * time.Minute

// ErrNoRepository is returned by Scrub if there is no repository or no git.
var ErrNoRepository = errors.New("there is no git repository")

// ErrNotDisposable is returned by Scrub if the sandbox does not own its working
// directory (env.Info.Disposable). Nothing was changed.
var ErrNotDisposable = errors.New("the sandbox does not own its files")

// Scrub removes from the repository everything that could show history after
// HEAD: remotes, other branches, tags outside its history, reflogs, stashes,
// notes, replacements, unfinished merges, linked worktrees, alternates, and
// every loose or packed object that neither HEAD's history nor the index needs.
// HEAD, the index, all files and the output of git status stay the same.
//
// If the sandbox's image was prepared (see Prepare) and its git directory has
// not changed since, Scrub only verifies that.
//
// Scrub cannot be undone. It returns ErrNotDisposable if the repository may be
// the user's. On the host, Scrub ignores a repository around env.Info.Dir
// (ErrNoRepository), and the whole git directory of a repository inside it must
// be inside it, too. After any error other than these two the repository may be
// in any state. An error wraps ErrRefused if another try would have it again. A report
// that is not clean is not an error.
func Scrub(ctx context.Context, sandbox env.Environment) (ScrubReport, error) {
	var prepared preparedNote
	if note := sandbox.Info().Prepared; note != nil {
		if json.Unmarshal([]byte(note.Note), &prepared) != nil || !repository.IsHash(prepared.Inventory) || !prepared.Proof.IsClean() {
			prepared = preparedNote{} // without a valid note, the repository is scrubbed
		}
	}
	start := time.Now()
	res, err := scrub(ctx, sandbox, repository.Request{Op: repository.Scrub, Inventory: prepared.Inventory})
	switch {
	case err != nil:
		return ScrubReport{Duration: time.Since(start)}, err
	case res.Unchanged && prepared.Inventory != "":
		prepared.Proof.Prepared, prepared.Proof.Duration = true, time.Since(start)
		return prepared.Proof, nil
	}
	res.Report.Duration = time.Since(start)
	return *res.Report, nil
}

// scrub runs the program for Scrub or Prepare. The response has a valid report or is
// Unchanged.
func scrub(ctx context.Context, sandbox env.Environment, req repository.Request) (repository.Response, error) {
	info := sandbox.Info()
	if !info.Disposable {
		return repository.Response{}, ErrNotDisposable
	}
	if dir := confinement(info); dir != "" && (!filepath.IsAbs(dir) || filepath.Clean(dir) == "/") {
		return repository.Response{}, fmt.Errorf("scrub repository: %w: the sandbox's folder is %q", ErrRefused, dir)
	}
	req.Time = scrubTime
	res, err := run(ctx, sandbox, req)
	r := res.Report
	switch {
	case err != nil:
		return res, fmt.Errorf("scrub repository: %w", err)
	case res.Missing != "":
		return res, ErrNoRepository
	case r == nil && res.Unchanged:
	case r == nil || r.Head != "" && !repository.IsHash(r.Head) || min(r.RefsRemoved, r.ObjectsRemoved, r.Objects, r.Commits, r.Tags,
		r.StrayCommits, r.StrayObjects, r.StrayRefs, r.Remotes, r.Submodules) < 0:
		return res, fmt.Errorf("scrub repository: %w", errInvalidOutput)
	default:
		r.Method, r.Prepared = sanitize(r.Method), false
	}
	return res, nil
}

// PreparationKey identifies the version of Prepare. An image is prepared again when it
// changes.
func PreparationKey() string { return repository.ScrubVersion() }

// preparedNote is the note that Prepare stores with an image.
type preparedNote struct {
	Proof     ScrubReport `json:"proof"`
	Inventory string      `json:"inventory"`
}

// Prepare scrubs the repository of an image, in a sandbox that is saved as an
// image afterwards. Scrub receives the returned note as env.Info.Prepared in
// sandboxes of that image. The note is empty if there is no repository to scrub
// or the scrub was incomplete.
func Prepare(ctx context.Context, sandbox env.Environment) (note string, err error) {
	res, err := scrub(ctx, sandbox, repository.Request{Op: repository.Prepare})
	switch {
	case errors.Is(err, ErrNoRepository), errors.Is(err, ErrNotDisposable):
		return "", nil
	case err != nil:
		return "", err
	case !res.Report.IsClean():
		return "", nil // each attempt's scrub reports the incomplete scrub
	case !repository.IsHash(res.Inventory):
		return "", fmt.Errorf("prepare repository: %w", errInvalidOutput)
	}
	text, err := json.Marshal(preparedNote{*res.Report, res.Inventory})
	if err != nil {
		return "", fmt.Errorf("encode scrub report: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
