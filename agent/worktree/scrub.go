package worktree

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/env"
)

//go:embed scrub.sh
var scrubScript string

// ScrubReport is what Scrub removed and what is left. The numbers are git's,
// counted after the scrub.
type ScrubReport struct {
	Head   string // empty for a repository without a commit
	Method string // how objects were removed: "none", "loose" or "repacked"

	RefsRemoved, ObjectsRemoved int
	Objects, Commits, Tags      int

	// StrayCommits are commits in the object store outside the history of HEAD.
	// StrayObjects belong neither to that history nor to one of its tags nor to
	// the index. StrayRefs are neither HEAD's branch nor tags in its history.
	// Remotes is the number of configured remotes.
	StrayCommits, StrayObjects, StrayRefs, Remotes int

	// Submodules is the number of submodule repositories, which are not
	// scrubbed.
	Submodules int
	// Duration is how long Scrub took. Prepared reports that the git directory
	// is as Prepare left it in the image; the fields above Duration are then
	// from the scrub by Prepare.
	Duration time.Duration
	Prepared bool
}

// IsClean reports whether nothing outside the history of HEAD is left.
func (p ScrubReport) IsClean() bool {
	return p.StrayCommits == 0 && p.StrayObjects == 0 && p.StrayRefs == 0 && p.Remotes == 0
}

// scrubTimeout is much longer than the scrub of several gigabytes takes.
const scrubTimeout = 10 * time.Minute

// ErrNoRepository is returned by Scrub if there is no repository or no git.
var ErrNoRepository = errors.New("there is no git repository")

// ErrNotDisposable is returned by Scrub if the sandbox does not own its working
// directory (env.Info.Disposable). Nothing was changed.
var ErrNotDisposable = errors.New("the sandbox does not own its files")

// errForeign is returned by Scrub if the repository is partly outside the
// sandbox's working directory. Nothing was changed.
var errForeign = errors.New("the repository is not inside the sandbox's folder")

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
// in any state. A report that is not clean is not an error.
func Scrub(ctx context.Context, sandbox env.Environment) (ScrubReport, error) {
	if !sandbox.Info().Disposable {
		return ScrubReport{}, ErrNotDisposable
	}
	start := time.Now()
	if report, ok, err := checkPrepared(ctx, sandbox); ok || err != nil {
		return report, err
	}
	if err := checkConfined(ctx, sandbox); err != nil {
		return ScrubReport{}, fmt.Errorf("scrub repository: %w", err)
	}
	res, err := execute(ctx, sandbox, scrubScript, scrubTimeout)
	report := ScrubReport{Duration: time.Since(start)}
	switch {
	case err != nil:
		return report, fmt.Errorf("scrub repository: %w", err)
	case res.TimedOut:
		return report, fmt.Errorf("scrub repository: it did not end within %v", scrubTimeout)
	case res.ExitCode == exitNoGit || res.ExitCode == exitNoRepository:
		return report, ErrNoRepository
	case res.Failure != "":
		return report, fmt.Errorf("scrub repository: %s", res.Failure)
	case isNoSpace(res):
		return report, fmt.Errorf("scrub repository: %w: %s", ErrNoSpace, sanitize(res.Output))
	case res.ExitCode != 0:
		return report, fmt.Errorf("scrub repository: exit code %d: %s", res.ExitCode, sanitize(res.Output))
	}
	if err := report.parse(res.Output); err != nil {
		return report, fmt.Errorf("scrub repository: %w", err)
	}
	return report, nil
}

// checkConfined checks that everything that Scrub would change is inside the
// sandbox's folder. The script checks this too; this second check protects the
// user's work from a mistake in the script.
func checkConfined(ctx context.Context, sandbox env.Environment) error {
	if confinement(sandbox.Info()) == "" {
		return nil
	}
	t, err := findRepository(ctx, sandbox, Config{})
	switch {
	case err != nil:
		return err
	case t.Base == "": // the scrub script reports why
		return nil
	case t.confinement == "" || t.confinement == "/":
		return errForeign
	}
	for _, dir := range []string{t.topDir, t.gitDir, t.commonDir} {
		if dir != t.confinement && !strings.HasPrefix(dir, t.confinement+"/") {
			return fmt.Errorf("%w: %s", errForeign, sanitize([]byte(dir)))
		}
	}
	return nil
}

// parse reads the numbers that scrub.sh prints. All must be present.
func (p *ScrubReport) parse(out []byte) error {
	numbers := map[string]*int{
		"refs_removed": &p.RefsRemoved, "objects_removed": &p.ObjectsRemoved,
		"objects": &p.Objects, "commits": &p.Commits, "tags": &p.Tags,
		"stray_commits": &p.StrayCommits, "stray_objects": &p.StrayObjects, "stray_refs": &p.StrayRefs,
		"remotes": &p.Remotes, "submodules": &p.Submodules,
	}
	for line := range bytes.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
		switch n := numbers[name]; {
		case name == "head" && isHash(value):
			p.Head = value
		case name == "method":
			p.Method = sanitize([]byte(value))
		case n != nil:
			v, err := strconv.Atoi(value)
			if err != nil || v < 0 {
				return fmt.Errorf("invalid count %s=%.40q", name, value)
			}
			*n = v
			delete(numbers, name)
		}
	}
	if len(numbers) > 0 {
		return errors.New("incomplete scrub report")
	}
	return nil
}
