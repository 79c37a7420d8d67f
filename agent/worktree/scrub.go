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

// Proof says what Scrub removed and what is left. The numbers are git's own
// word about the repository after the fact, not about what was meant to go.
type Proof struct {
	Head   string // empty for a repository without a commit
	Method string // "none", "loose" or "repacked": how objects were removed

	RefsRemoved, ObjectsRemoved int
	Objects, Commits, Tags      int

	// StrayCommits are commits in the object store that are neither HEAD nor
	// an ancestor of it; StrayObjects belong neither to those nor to a tag of
	// theirs nor to the index; StrayRefs are neither HEAD's branch nor a tag
	// in its history. Remotes count those that git still knows of.
	StrayCommits, StrayObjects, StrayRefs, Remotes int

	// Submodules counts repositories of submodules, which are left alone.
	Submodules int
	// Duration is how long Scrub took. Where Prepared, it found everything in the
	// git directory as Prepare left it in the image, and the rest is what was
	// proved then.
	Duration time.Duration
	Prepared bool
}

// Holds says whether the repository is honest.
func (p Proof) Holds() bool {
	return p.StrayCommits == 0 && p.StrayObjects == 0 && p.StrayRefs == 0 && p.Remotes == 0
}

// scrubTimeout is far beyond what a repository of some gigabytes takes.
const scrubTimeout = 10 * time.Minute

// ErrNoRepository is returned by Scrub where there is nothing to scrub: no
// repository, or no git to look at one with.
var ErrNoRepository = errors.New("there is no git repository")

// ErrNotDisposable is returned by Scrub for a sandbox whose working directory is
// not its own (env.Info.Disposable). Nothing was done.
var ErrNotDisposable = errors.New("its files are not the sandbox's own")

// errForeign is returned by Scrub for a repository in the sandbox's working
// directory that is, in part, elsewhere. Nothing was done.
var errForeign = errors.New("it is not in the sandbox's own folder")

// Scrub removes from the repository that Open finds
// whatever could show what came after HEAD: remotes, other branches, tags
// outside its history, reflogs, stashes, notes, replacements, unfinished
// merges, linked work trees, alternates, and every object, loose or packed,
// that neither HEAD's history nor the index needs. HEAD, the index and all
// files stay, and what git status says of them.
//
// Where the sandbox's image was prepared (see Prepare), a listing of the git
// directory that is what it was then is proof enough.
//
// It changes the repository for good, and refuses with ErrNotDisposable where
// that could be somebody's. On the host, a repository that lies around
// env.Info.Dir is none of the sandbox's (ErrNoRepository), and one that lies in
// it must lie there with all of its git directory. Any other error but
// ErrNoRepository means that the repository may be in any state. A Proof that
// does not hold comes without an error.
func Scrub(ctx context.Context, box env.Environment) (Proof, error) {
	if !box.Info().Disposable {
		return Proof{}, ErrNotDisposable
	}
	start := time.Now()
	if p, ok, err := stillPrepared(ctx, box); ok || err != nil {
		return p, err
	}
	if err := confined(ctx, box); err != nil {
		return Proof{}, fmt.Errorf("scrub repository: %w", err)
	}
	res, err := execute(ctx, box, scrubScript, scrubTimeout)
	p := Proof{Duration: time.Since(start)}
	switch {
	case err != nil:
		return p, fmt.Errorf("scrub repository: %w", err)
	case res.TimedOut:
		return p, fmt.Errorf("scrub repository: it did not end within %v", scrubTimeout)
	case res.ExitCode == noGit || res.ExitCode == noRepository:
		return p, ErrNoRepository
	case res.Failure != "":
		return p, fmt.Errorf("scrub repository: %s", res.Failure)
	case isNoRoom(res):
		return p, fmt.Errorf("scrub repository: %w: %s", ErrNoRoom, printable(res.Output))
	case res.ExitCode != 0:
		return p, fmt.Errorf("scrub repository: exit code %d: %s", res.ExitCode, printable(res.Output))
	}
	if err := p.read(res.Output); err != nil {
		return p, fmt.Errorf("scrub repository: %w", err)
	}
	return p, nil
}

// confined holds the places of what would be changed against the folder that is
// the sandbox's, before anything is: the script does so too, but a mistake in it
// would cost somebody their work.
func confined(ctx context.Context, box env.Environment) error {
	if bound(box.Info()) == "" {
		return nil
	}
	t, err := find(ctx, box, Config{})
	switch {
	case err != nil:
		return err
	case t.Base == "": // the script says what is there instead
		return nil
	case t.bound == "" || t.bound == "/":
		return errForeign
	}
	for _, at := range []string{t.top, t.dir, t.common} {
		if at != t.bound && !strings.HasPrefix(at, t.bound+"/") {
			return fmt.Errorf("%w: %s", errForeign, printable([]byte(at)))
		}
	}
	return nil
}

// read takes the numbers out of what scrub.sh prints. Each has to be there.
func (p *Proof) read(out []byte) error {
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
			p.Method = printable([]byte(value))
		case n != nil:
			v, err := strconv.Atoi(value)
			if err != nil || v < 0 {
				return fmt.Errorf("%s is %.40q, which is no count", name, value)
			}
			*n = v
			delete(numbers, name)
		}
	}
	if len(numbers) > 0 {
		return errors.New("the proof is not complete")
	}
	return nil
}
