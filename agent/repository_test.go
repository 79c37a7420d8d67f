package agent_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
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

// fakeRepository is a repository without git: a folder with the file a.txt, and a
// sandbox whose shell is an interpreter in this process.
type fakeRepository struct {
	dir     string
	sandbox env.Environment
}

const baseContent = "one\n" // of a.txt

func newRepository(t *testing.T) *fakeRepository {
	t.Helper()
	r := &fakeRepository{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(r.dir, "a.txt"), []byte(baseContent), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.sandbox = envtest.NewMemory(env.Info{Dir: r.dir}, r.shell)
	return r
}

// shell runs a script of the agent. "git diff" prints the diff of the repository.
func (r *fakeRepository) shell(ctx context.Context, c env.Command, w io.Writer) int {
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
	runner, err := interp.New(interp.Dir(r.dir), interp.StdIO(nil, &out, &out), interp.ExecHandlers(git), interp.Env(expand.ListEnviron(vars...)))
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
func (r *fakeRepository) patch() ([]byte, error) {
	if _, err := os.Stat(filepath.Join(r.dir, ".git")); err != nil {
		return nil, fmt.Errorf("the commit of the start is gone from the repository: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "*"))
	if err != nil {
		return nil, err
	}
	var patch bytes.Buffer
	for _, file := range files {
		if filepath.Base(file) == ".git" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name, old := filepath.Base(file), ""
		if name == "a.txt" {
			old = baseContent
		}
		if string(content) == old {
			continue
		}
		fmt.Fprintf(&patch, "diff --git a/%s b/%s\n", name, name)
		for line := range strings.Lines(old) {
			patch.WriteString("-" + line)
		}
		for line := range strings.Lines(string(content)) {
			patch.WriteString("+" + line)
		}
	}
	return patch.Bytes(), nil
}

// Scrub implements agent.Repository. It finds nothing to remove.
func (r *fakeRepository) Scrub(context.Context, env.Environment) (worktree.ScrubReport, error) {
	return worktree.ScrubReport{Head: strings.Repeat("a", 40), Commits: 1, Duration: 1}, nil
}

// Open implements agent.Repository.
func (r *fakeRepository) Open(_ context.Context, _ env.Environment, cfg worktree.Config) (*worktree.Tree, error) {
	start := worktree.State{Base: strings.Repeat("a", 40), Tree: treeOf(nil)}
	if cfg.Start != nil {
		start = *cfg.Start
	}
	return worktree.New(start, r), nil
}

// Diff implements worktree.Differ.
func (r *fakeRepository) Diff(context.Context) (worktree.Diff, error) {
	patch, err := r.patch()
	if err != nil {
		return worktree.Diff{}, err
	}
	return worktree.Diff{Patch: patch, Tree: treeOf(patch), Exact: true}, nil
}

// Check implements worktree.Differ.
func (r *fakeRepository) Check(_ context.Context, patch []byte) (worktree.CheckResult, error) {
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
func (r *fakeRepository) Hash(context.Context) (string, error) {
	patch, err := r.patch()
	if err != nil {
		return "", err
	}
	return treeOf(patch), nil
}

// treeOf returns a hash of the tree with a patch applied.
func treeOf(patch []byte) string {
	sum := sha1.Sum(patch)
	return hex.EncodeToString(sum[:])
}
