// Package worktree takes the diff of a repository inside a sandbox by running
// git there. It leaves no trace in the repository: the index, the objects, the
// settings and the attributes are in a separate, temporary git directory (the
// shadow). Diffs are taken against the state of the files at the start: the
// commit with the changes and new files at that time.
//
//	tree, err := worktree.Open(ctx, e, worktree.Config{})  // at the start: captures the state
//	diff, err := tree.Diff(ctx)                            // at the end: everything since
//	result, err := tree.Check(ctx, patch)                  // does the patch apply?
//
// Scrub does write to the repository: it removes everything outside the history
// of HEAD.
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

// Tree is a repository's working tree with its state at the start.
type Tree struct {
	// Base is the commit of the state: HEAD when the state was captured, or the
	// empty tree for a repository without a commit. If there is no repository,
	// Base and all diffs are empty.
	Base string
	// Missing is what is missing if Base is empty, such as "no git".
	Missing string

	differ      Differ // answers instead of git; nil for git
	sandbox     env.Environment
	cfg         Config
	gitDir      string // git directory
	commonDir   string // git directory shared with other worktrees
	topDir      string // top of the working tree
	confinement string // folder that must contain the repository; empty if there is no such rule
	settings    []byte // git configuration of the shadow
	start       State
	tempTag     string // part of the names of temporary folders
}

// marker is the first line of a script's output. It is passed as a submission
// marker, so that the sandbox does not truncate a patch.
const marker = "MINI_WORKTREE_PATCH"

//go:embed git.sh
var gitScript string

//go:embed base.sh
var baseScript string

// Open finds the repository around the sandbox's working directory (see
// findRepository) and captures the state of its files, unless cfg.Start has it.
// If there is no repository, Tree.Missing is set.
func Open(ctx context.Context, sandbox env.Environment, cfg Config) (*Tree, error) {
	t, err := findRepository(ctx, sandbox, cfg)
	switch {
	case err != nil || t.Base == "":
		return t, err
	case cfg.Start != nil:
		t.Base, t.start = cfg.Start.Base, *cfg.Start
		_, err = t.runScript(ctx, "emit exact none\n", nil, tryTimeout(ctx)) // check that shadow.sh can restore the state
		return t, err
	}
	if t.start, err = t.captureState(ctx); err != nil {
		return nil, fmt.Errorf("capture the state of the files: %w", err)
	}
	return t, nil
}

// findRepository finds the repository around the sandbox's working directory.
// If that directory was made for the sandbox on the host, it finds only a
// repository inside it, because one around it belongs to the user. If there is
// no repository or no git, it sets Tree.Missing and returns no error.
func findRepository(ctx context.Context, sandbox env.Environment, cfg Config) (*Tree, error) {
	if cfg.MaxPatch <= 0 {
		cfg.MaxPatch = DefaultMaxPatch
	}
	t := &Tree{sandbox: sandbox, cfg: cfg, tempTag: rand.Text()}
	res, err := execute(ctx, sandbox, "marker="+marker+"\n"+baseScript, scriptTimeout)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find repository: %w", err)
	case res.TimedOut:
		return nil, fmt.Errorf("find repository: git did not end within %v", scriptTimeout)
	case res.ExitCode != 0:
		switch {
		case res.ExitCode == exitNoGit:
			t.Missing = "no git"
		case res.Failure != "":
			t.Missing = "no shell"
		default:
			t.Missing = "no git repository"
		}
		return t, nil
	}
	_, found, _ := bytes.Cut(res.Output, []byte(marker+"\n"))
	fields := bytes.SplitN(found, []byte{0}, 6)
	if len(fields) < 6 || res.Truncated || !isHash(string(fields[0])) {
		return nil, fmt.Errorf("find repository: %w: %.200q", errInvalidOutput, res.Output)
	}
	t.Base, t.gitDir, t.commonDir, t.topDir = string(fields[0]), string(fields[1]), string(fields[2]), string(fields[3])
	t.confinement = string(fields[4])
	t.settings = shadowSettings(t.Base, fields[5])
	return t, nil
}

// Exit codes of the scripts. Other programs do not use them.
const (
	exitNoSpace      = 96
	exitNoGit        = 97
	exitNoRepository = 98
)

func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

const scriptTimeout = 100 * time.Second

// execute runs git.sh and then the script in the sandbox.
func execute(ctx context.Context, sandbox env.Environment, script string, timeout time.Duration) (env.Result, error) {
	// In a container the sandbox owns every repository, even if its files have
	// another owner. Elsewhere git's ownership check applies.
	contained := "contained=false\n"
	if sandbox.Info().Image != "" {
		contained = "contained=true\n"
	}
	return sandbox.Execute(ctx, env.Command{
		Script:            contained + "bound=" + shellQuote(confinement(sandbox.Info())) + "\n" + gitScript + script,
		Timeout:           timeout,
		SubmissionMarkers: []string{marker},
		// The scripts are for any POSIX shell, whatever shell the agent's
		// commands use. A login shell would print the output of its profile.
		Interpreter: []string{"sh", "-c"},
		// The output of a profile would come before the marker. A locale would
		// make the shell decode bytes as characters.
		Env: map[string]string{"BASH_ENV": "", "ENV": "", "LC_ALL": "C"},
	})
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

// ErrNoSpace is wrapped by errors of scripts that found no disk with enough
// free space, or filled it.
var ErrNoSpace = errors.New("no space on the sandbox's disks")

// isNoSpace reports whether a script failed because a disk is full.
func isNoSpace(res env.Result) bool {
	return res.ExitCode == exitNoSpace || res.ExitCode != 0 && bytes.Contains(res.Output, []byte("No space left on device"))
}

var errTimeout = errors.New("git did not end within")

// scriptError returns why a script failed; nil if it succeeded.
func scriptError(res env.Result, timeout time.Duration) error {
	switch {
	case res.TimedOut:
		return fmt.Errorf("%w %v", errTimeout, timeout.Round(time.Second))
	case res.Failure != "":
		return errors.New(res.Failure)
	case isNoSpace(res):
		return fmt.Errorf("%w: %s", ErrNoSpace, sanitize(res.Output))
	case res.ExitCode != 0:
		return fmt.Errorf("exit code %d: %s", res.ExitCode, sanitize(res.Output))
	case res.Truncated:
		return fmt.Errorf("the output exceeds %d MB", env.SubmissionLimit>>20)
	}
	return nil
}

// sanitize returns the start of a sandbox's output as printable text.
func sanitize(b []byte) string {
	const limit = 500
	s := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(b[:min(len(b), 4*limit)]), "?"))
	return strings.TrimSpace(text.ClipRunes(s, limit))
}
