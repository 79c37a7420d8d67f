// Package agenttest has a repository without git, for tests whose subject is not git.
package agenttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
)

// Repository is a folder that has only the file a.txt at the start, with the line "one".
// It implements agent.Repository and worktree.Differ: its diff is each file that differs
// from the start, as removed and added lines.
type Repository struct {
	Dir     string
	Sandbox env.Environment // in memory; its shell is an interpreter in this process
}

const baseContent = "one\n" // of a.txt

// NewRepository returns a repository in a temporary folder. An empty folder .git stands
// for its history.
func NewRepository(t testing.TB) *Repository {
	t.Helper()
	r := &Repository{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(r.Dir, "a.txt"), []byte(baseContent), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.Dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.Sandbox = envtest.NewMemory(env.Info{Dir: r.Dir}, r.shell)
	return r
}

// shell runs a script of the agent. "git diff" prints the diff of the repository.
func (r *Repository) shell(ctx context.Context, c env.Command, w io.Writer) int {
	var out lockedBuffer // the interpreter writes a line end on its own
	defer func() { _, _ = w.Write(out.text.Bytes()) }()
	file, err := syntax.NewParser().Parse(strings.NewReader(c.Script), "")
	if err != nil {
		_, _ = fmt.Fprintln(&out, err)
		return 2
	}
	vars := os.Environ()
	for name, value := range c.Env {
		vars = append(vars, name+"="+value)
	}
	git := func(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
		return func(ctx context.Context, args []string) error {
			if args[0] != "git" {
				return next(ctx, args)
			}
			patch, err := r.patch()
			if err == nil {
				_, err = interp.HandlerCtx(ctx).Stdout.Write(patch)
			}
			return err
		}
	}
	runner, err := interp.New(interp.Dir(r.Dir), interp.StdIO(nil, &out, &out), interp.ExecHandlers(git), interp.Env(expand.ListEnviron(vars...)))
	if err != nil {
		_, _ = fmt.Fprintln(&out, err)
		return 2
	}
	var status interp.ExitStatus
	switch err := runner.Run(ctx, file); {
	case err == nil:
		return 0
	case asExit(err, &status):
		return int(status)
	default:
		return 1
	}
}

// lockedBuffer is a buffer that the programs of a pipeline share.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // not embedded: its ReadFrom takes no lock
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func asExit(err error, status *interp.ExitStatus) bool {
	s, ok := err.(interp.ExitStatus) //nolint:errorlint // the interpreter does not wrap it
	*status = s
	return ok
}

// patch returns a patch of all files that differ from the start.
func (r *Repository) patch() ([]byte, error) {
	if _, err := os.Stat(filepath.Join(r.Dir, ".git")); err != nil {
		return nil, fmt.Errorf("the commit of the start is gone from the repository: %w", err)
	}
	var patch bytes.Buffer
	root := os.DirFS(r.Dir)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		content, err := fs.ReadFile(root, name)
		old := ""
		if name == "a.txt" {
			old = baseContent
		}
		if err != nil || string(content) == old {
			return err
		}
		fmt.Fprintf(&patch, "diff --git a/%s b/%s\n", name, name)
		for line := range strings.Lines(old) {
			patch.WriteString("-" + line)
		}
		for line := range strings.Lines(string(content)) {
			patch.WriteString("+" + line)
		}
		return nil
	})
	return patch.Bytes(), err
}

// Scrub implements agent.Repository. It finds nothing to remove.
func (r *Repository) Scrub(context.Context, env.Environment) (worktree.ScrubReport, error) {
	return worktree.ScrubReport{Head: strings.Repeat("a", 40), Commits: 1, Duration: 1}, nil
}

// Open implements agent.Repository.
func (r *Repository) Open(_ context.Context, _ env.Environment, cfg worktree.Config) (*worktree.Tree, error) {
	start := worktree.State{Base: strings.Repeat("a", 40), Tree: treeOf(nil)}
	if cfg.Start != nil {
		start = *cfg.Start
	}
	return worktree.New(start, r), nil
}

// Diff implements worktree.Differ.
func (r *Repository) Diff(context.Context) (worktree.Diff, error) {
	patch, err := r.patch()
	if err != nil {
		return worktree.Diff{}, err
	}
	return worktree.Diff{Patch: patch, Tree: treeOf(patch), Exact: true}, nil
}

// Check implements worktree.Differ.
func (r *Repository) Check(_ context.Context, patch []byte) (worktree.CheckResult, error) {
	if _, err := r.patch(); err != nil {
		return worktree.CheckResult{}, err
	}
	if !bytes.HasPrefix(patch, []byte("diff --git ")) {
		return worktree.CheckResult{GitError: "error: No valid patches in input"}, nil
	}
	whole := patch
	if !bytes.HasSuffix(patch, []byte("\n")) {
		whole = append(bytes.Clone(patch), '\n')
	}
	return worktree.CheckResult{Patch: whole, NewlineAdded: len(whole) > len(patch), Tree: treeOf(whole)}, nil
}

// Hash implements worktree.Differ.
func (r *Repository) Hash(context.Context) (string, error) {
	patch, err := r.patch()
	if err != nil {
		return "", err
	}
	return treeOf(patch), nil
}

// treeOf returns a hash of the tree with a patch applied.
func treeOf(patch []byte) string {
	sum := sha256.Sum256(patch)
	return hex.EncodeToString(sum[:20]) // the length of a hash of git
}
