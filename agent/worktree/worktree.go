// Package worktree takes the diff of a repository inside a sandbox. The work is done
// there, by a program of the helper with git (package env/helper/repository). It leaves
// no trace in the repository: the index, the objects, the settings and the attributes are
// in a separate, temporary git directory. Diffs are taken against the state of the files
// at the start: the commit with the changes and new files at that time.
//
//	tree, err := worktree.Open(ctx, e, worktree.Config{})  // at the start: captures the state
//	diff, err := tree.Diff(ctx)                            // at the end: everything since
//	result, err := tree.Check(ctx, patch)                  // does the patch apply?
//
// Scrub does write to the repository: it removes everything outside the history of HEAD.
//
// In an environment without the helper, which lacks env.RepositoryProgram, there is no
// diff (see Tree.Missing).
package worktree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/repository"
	"github.com/minibench/mini/internal/text"
)

// DefaultMaxPatch is the default maximum size of a patch, in bytes.
const DefaultMaxPatch = 5_000_000

// Config selects what belongs in a patch. The zero value includes everything
// that the repository does not ignore.
type Config struct {
	// Exclude are .gitignore patterns of new files to leave out. They do not
	// apply to files of the base commit, and the repository's own .gitignore
	// can negate them.
	Exclude []string
	// MaxPatch is the maximum size of a patch, in bytes; zero means
	// DefaultMaxPatch.
	MaxPatch int
	// Start is the state to take diffs against; nil means the state at Open.
	Start *State
}

// State is the state of the files at the start.
type State = repository.State

// Tree is a repository's working tree with its state at the start.
type Tree struct {
	// Base is the commit of the state: HEAD when the state was captured, or the
	// empty tree for a repository without a commit. If there is no repository,
	// Base and all diffs are empty.
	Base string
	// Missing is what is missing if Base is empty, such as "no git".
	Missing string

	differ  Differ // answers instead of git; nil for git
	sandbox env.Environment
	cfg     Config
	found   *repository.Repository
	start   State
}

const (
	diffTime  = 4 * checkTime // several tries, with smaller and smaller files
	checkTime = 100 * time.Second
	hashTime  = time.Minute
	// graceTime is what the program has beyond its own limit, to end by itself.
	graceTime = 10 * time.Second
)

// Open finds the repository around the sandbox's working directory and captures the state
// of its files, unless cfg.Start has it. If that directory was made for the sandbox on
// the host, it finds only a repository inside it, because one around it belongs to the
// user. If there is no repository, Tree.Missing is set.
func Open(ctx context.Context, sandbox env.Environment, cfg Config) (*Tree, error) {
	if cfg.MaxPatch <= 0 {
		cfg.MaxPatch = DefaultMaxPatch
	}
	t := &Tree{sandbox: sandbox, cfg: cfg}
	res, err := run(ctx, sandbox, repository.Request{Op: repository.Open, Time: diffTime, Exclude: cfg.Exclude, Start: cfg.Start})
	switch {
	case err != nil:
		return nil, fmt.Errorf("capture the state of the files: %w", err)
	case res.Missing != "":
		t.Missing = sanitize(res.Missing)
		return t, nil
	case res.Repository == nil:
		return nil, fmt.Errorf("capture the state of the files: %w", errInvalidOutput)
	}
	t.found = res.Repository
	switch s := res.State; {
	case cfg.Start != nil:
		t.start = *cfg.Start
	case s == nil || !repository.IsHash(s.Base) || !repository.IsHash(s.Tree) || len(s.Patch) > repository.MaxStatePatch || len(s.Ignored)+len(s.LeftOut) > maxLists:
		return nil, fmt.Errorf("capture the state of the files: %w", errInvalidOutput)
	default:
		t.start = *s
	}
	t.Base = t.start.Base
	return t, nil
}

// maxLists bounds Ignored and LeftOut of a state together, in bytes. They are part of every
// request.
const maxLists = 2 << 20

// Start returns the state that diffs are taken against.
func (t *Tree) Start() State { return t.start }

// Hash returns git's hash of the current working tree, with the same files as
// Diff: new ones, but not ignored ones. For the same files, the hash equals Diff's
// Tree, unless Diff leaves out more files to make the patch small enough. The
// hash is empty if there is no repository.
//
// Git reads only files that are newer than the repository's index, so Hash
// costs little more than a stat of each file. It leaves no files in the
// sandbox, even if ctx ends.
func (t *Tree) Hash(ctx context.Context) (string, error) {
	switch {
	case t.Base == "":
		return "", nil
	case t.differ != nil:
		return t.differ.Hash(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, hashTime)
	defer cancel()
	res, err := t.run(ctx, repository.Request{Op: repository.Hash, Time: hashTime})
	if err != nil {
		return "", fmt.Errorf("hash working tree: %w", err)
	}
	return res.Tree, nil
}

// run runs the program on the repository.
func (t *Tree) run(ctx context.Context, req repository.Request) (repository.Response, error) {
	req.Repository, req.Start, req.Exclude, req.MaxPatch = t.found, &t.start, t.cfg.Exclude, t.cfg.MaxPatch
	res, err := run(ctx, t.sandbox, req)
	switch {
	case err == nil && res.Missing != "":
		err = errors.New(sanitize(res.Missing))
	case err == nil && res.Tree != "" && !repository.IsHash(res.Tree):
		err = errInvalidOutput
	}
	return res, err
}

const noHelper = "no helper of mini"

// Errors of the program.
var (
	// ErrNoSpace means that no disk of the sandbox has enough free space.
	ErrNoSpace = errors.New("no space on the sandbox's disks")
	// ErrRefused means that the repository cannot be worked on, also at another try.
	ErrRefused       = errors.New("the repository cannot be used")
	errTooLarge      = errors.New("the change is too large for a patch")
	errTimeout       = errors.New("git did not end in time")
	errInvalidOutput = errors.New("invalid output of the program in the sandbox")
)

// run runs the program in the sandbox.
func run(ctx context.Context, sandbox env.Environment, req repository.Request) (res repository.Response, err error) {
	info := sandbox.Info()
	// In a container the sandbox owns every repository, even if its files have another
	// owner. Elsewhere git's ownership check applies, and the repository is foreign: it
	// may name no program.
	req.Contained = info.Image != ""
	req.Bound = []byte(confinement(info))
	if req.Tag == "" {
		req.Tag = rand.Text()
	}
	if deadline, ok := ctx.Deadline(); ok {
		// The program ends by itself before it is killed.
		req.Time = max(min(req.Time, time.Until(deadline)*9/10), time.Millisecond)
	}
	defer func() {
		if err != nil && ctx.Err() != nil && req.Op == repository.Hash {
			// The program was killed, so its temporary files are left, and the work goes on.
			_, _ = run(context.WithoutCancel(ctx), sandbox, repository.Request{Op: repository.Clean, Tag: req.Tag, Repository: req.Repository, Time: graceTime})
		}
	}()
	request, err := repository.Encode(req)
	if err != nil {
		return res, err
	}
	out, err := sandbox.Execute(ctx, env.Command{
		Script: string(request), Interpreter: []string{env.RepositoryProgram},
		Timeout: req.Time + graceTime, SubmissionMarkers: []string{repository.Marker},
	})
	switch {
	case err != nil:
		return res, err
	case out.TimedOut:
		return res, fmt.Errorf("%w (%v)", errTimeout, req.Time)
	case strings.HasPrefix(out.Failure, "There is no shell"):
		return repository.Response{Missing: noHelper}, nil
	case out.Failure != "":
		return res, errors.New(out.Failure)
	case out.Truncated:
		return res, fmt.Errorf("the output exceeds %d MB", env.SubmissionLimit>>20)
	}
	body, ok := bytes.CutPrefix(out.Output, []byte(repository.Marker+"\n"))
	switch {
	case !ok && (out.ExitCode == 0 || out.ExitCode == 126 || out.ExitCode == 127): // it was another program
		return repository.Response{Missing: noHelper}, nil
	case ok:
		res, err = repository.Decode[repository.Response](body)
	}
	if !ok || err != nil {
		return res, fmt.Errorf("%w: exit code %d, %.200q", errInvalidOutput, out.ExitCode, out.Output)
	}
	message := sanitize([]byte(res.Error))
	switch res.Failure {
	case "":
		return res, nil
	case repository.FailedSpace:
		err = fmt.Errorf("%w: %s", ErrNoSpace, message)
	case repository.FailedSize:
		err = fmt.Errorf("%w: %s", errTooLarge, message)
	case repository.FailedTime:
		err = fmt.Errorf("%w: %s", errTimeout, message)
	case repository.FailedRefused:
		err = fmt.Errorf("%w: %s", ErrRefused, message)
	default:
		err = errors.New(message)
	}
	return res, err
}

// confinement returns the folder that must contain the sandbox's repository. It
// is empty if the repository may also be around the working directory: in a
// container, whose files are all the sandbox's, and in the user's own folder,
// where the repository is only read.
func confinement(info env.Info) string {
	if info.Image != "" || !info.Disposable {
		return ""
	}
	return info.Dir
}

// sanitize returns the start of a sandbox's output as printable text.
func sanitize[T string | []byte](output T) string {
	const limit = 500
	s := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(output[:min(len(output), 4*limit)]), "?"))
	return strings.TrimSpace(text.ClipRunes(s, limit))
}
