// Package worktree takes the diff of a repository inside a sandbox, by git
// commands run there, without leaving a trace in it: the index, the objects,
// the settings and the attributes it needs live in a shadow git directory of
// their own, so that also a repository of the user's is only read. Every patch
// is against the state of the files at the start, which is that of the commit
// with what was changed and new by then, and is held against it.
//
//	tree, err := worktree.Open(ctx, box, worktree.Config{})  // at the start: remembers the state
//	diff, err := tree.Diff(ctx)                              // at the end: everything since
//	finding, err := tree.Check(ctx, patch)                   // does git apply take it?
//
// Scrub is the exception that does write: it removes from a repository
// everything that is not in the history of HEAD.
package worktree

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/env"
)

// DefaultMaxPatch is the size of a patch, in bytes, where Config has none.
const DefaultMaxPatch = 5_000_000

// Config says what belongs in a patch. The zero value takes everything that
// the repository does not ignore.
type Config struct {
	// Exclude are patterns, as in a .gitignore file, of new files to leave
	// out. Files of the base commit are never left out by them, and a pattern
	// that the repository's own .gitignore negates does not hold.
	Exclude []string
	// MaxPatch bounds a patch, in bytes; zero means DefaultMaxPatch.
	MaxPatch int
	// Start is the state that diffs are against; nil means that at Open.
	Start *State
}

// Tree is a repository's working tree as it was when it was opened.
type Tree struct {
	// Base is the commit of the state that diffs are against: HEAD at the time of
	// Open, or the empty tree of a repository without a commit. It is empty where
	// there is no repository, and every diff is then empty too.
	Base string
	// Missing says in a few words why Base is empty.
	Missing string

	box      env.Environment
	cfg      Config
	dir      string // the git directory
	common   string // the one that it shares with other work trees
	top      string // where the files are
	bound    string // the folder that all of it has to be in; empty if it may be anywhere
	settings []byte // how files become objects, as a file of git's
	start    State
	tag      string // in the names of its temporary folders
}

// marker lifts the sandbox's output limit, so that a patch arrives whole.
const marker = "MINI_WORKTREE_PATCH"

//go:embed git.sh
var gitScript string

//go:embed base.sh
var baseScript string

// Open finds the repository, and the state of its files; see find.
func Open(ctx context.Context, box env.Environment, cfg Config) (*Tree, error) {
	t, err := find(ctx, box, cfg)
	switch {
	case err != nil || t.Base == "":
		return t, err
	case cfg.Start != nil:
		t.Base, t.start = cfg.Start.Base, *cfg.Start
		_, err = t.ask(ctx, "emit exact none\n", nil, share(ctx)) // whether it can be made again
		return t, err
	}
	if t.start, err = t.takeStart(ctx); err != nil {
		return nil, fmt.Errorf("note the state of the files at the start: %w", err)
	}
	return t, nil
}

// find finds the repository around the sandbox's working directory, or in it
// where that was made for the sandbox on the host: whatever is around it is
// somebody's then, and not the attempt's. A directory outside any repository is
// not an error, nor is a sandbox without git: Tree.Missing says so.
func find(ctx context.Context, box env.Environment, cfg Config) (*Tree, error) {
	if cfg.MaxPatch <= 0 {
		cfg.MaxPatch = DefaultMaxPatch
	}
	t := &Tree{box: box, cfg: cfg, tag: rand.Text()}
	res, err := execute(ctx, box, baseScript, timeout)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find repository: %w", err)
	case res.TimedOut:
		return nil, fmt.Errorf("find repository: git did not end within %v", timeout)
	case res.ExitCode != 0:
		switch {
		case res.ExitCode == noGit:
			t.Missing = "no git"
		case res.Failure != "":
			t.Missing = "no shell"
		default:
			t.Missing = "no git repository"
		}
		return t, nil
	}
	fields := bytes.SplitN(res.Output, []byte{0}, 6)
	if len(fields) < 6 || res.Truncated || !isHash(string(fields[0])) {
		t.Missing = "no git repository that can be read"
		return t, nil
	}
	t.Base, t.dir, t.common, t.top = string(fields[0]), string(fields[1]), string(fields[2]), string(fields[3])
	t.bound = string(fields[4])
	t.settings = shadowSettings(t.Base, fields[5])
	return t, nil
}

// Exit codes of the scripts, that no program has.
const (
	noRoom       = 96
	noGit        = 97
	noRepository = 98
)

func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

const timeout = 100 * time.Second

// execute runs a script in the sandbox, after git.sh.
func execute(ctx context.Context, box env.Environment, script string, limit time.Duration) (env.Result, error) {
	// In a container every repository is the sandbox's own, whoever owns its
	// files. Elsewhere git's refusal to touch a stranger's stands.
	contained := "contained=false\n"
	if box.Info().Image != "" {
		contained = "contained=true\n"
	}
	return box.Execute(ctx, env.Command{
		Script:  contained + "bound=" + quote(bound(box.Info())) + "\n" + gitScript + script,
		Timeout: limit,
		Markers: []string{marker},
		// Whatever the agent's commands are run with: the scripts are for any
		// POSIX shell, and a login shell would print what its profile prints.
		Interpreter: []string{"sh", "-c"},
		// A profile that prints would come before the marker; a locale would
		// make a shell read our bytes as characters.
		Env: map[string]string{"BASH_ENV": "", "ENV": "", "LC_ALL": "C"},
	})
}

// bound is the folder that a sandbox's repository has to be in; empty where it
// may be around the working directory too: in a container, where all is the
// sandbox's own, and where the user has mini work on a repository of theirs,
// which is only read.
func bound(i env.Info) string {
	if i.Image != "" || !i.Disposable {
		return ""
	}
	return i.Dir
}

// ErrNoRoom is wrapped by errors of scripts that found no disk with enough room,
// or filled it.
var ErrNoRoom = errors.New("no room on the disks of the sandbox")

// isNoRoom reports whether a script failed for want of room.
func isNoRoom(res env.Result) bool {
	return res.ExitCode == noRoom || res.ExitCode != 0 && bytes.Contains(res.Output, []byte("No space left on device"))
}

var errSlow = errors.New("git did not end within")

// fail says why a script gave no answer; nil when it gave one.
func fail(res env.Result, limit time.Duration) error {
	switch {
	case res.TimedOut:
		return fmt.Errorf("%w %v", errSlow, limit.Round(time.Second))
	case res.Failure != "":
		return errors.New(res.Failure)
	case isNoRoom(res):
		return fmt.Errorf("%w: %s", ErrNoRoom, printable(res.Output))
	case res.ExitCode != 0:
		return fmt.Errorf("exit code %d: %s", res.ExitCode, printable(res.Output))
	case res.Truncated:
		return fmt.Errorf("more than %d MB came out", env.SubmissionLimit>>20)
	}
	return nil
}

// printable is the beginning of what a sandbox said, fit to be shown.
func printable(b []byte) string {
	const most = 500
	text := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(b[:min(len(b), 4*most)]), "?"))
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return strings.TrimSpace(text)
}
