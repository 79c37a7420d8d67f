// Package worktree takes the diff of a repository inside a sandbox, by git
// commands run there, without leaving a trace in it: the index, the objects
// and the attributes it needs live in a shadow git directory of their own, so
// that also a repository of the user's is only read.
//
//	tree, err := worktree.Open(ctx, box)  // at the start: remembers HEAD
//	patch, err := tree.Diff(ctx)          // at the end: everything since
package worktree

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

// Tree is a repository's working tree as it was when it was opened.
type Tree struct {
	// Base is the commit that diffs are against: HEAD at the time of Open,
	// or the empty tree of a repository without a commit. It is empty where
	// there is no repository, and every diff is then empty too.
	Base string

	box env.Environment
}

// marker lifts the sandbox's output limit, so that a patch arrives whole.
const marker = "MINI_WORKTREE_PATCH"

//go:embed git.sh
var gitScript string

//go:embed base.sh
var baseScript string

//go:embed diff.sh
var diffScript string

// Open finds the repository around the sandbox's working directory. A
// directory outside any repository is not an error.
func Open(ctx context.Context, box env.Environment) (*Tree, error) {
	t := &Tree{box: box}
	res, err := t.run(ctx, baseScript)
	if err != nil {
		return nil, fmt.Errorf("find repository: %w", err)
	}
	if hash := strings.TrimSpace(string(res.Output)); res.ExitCode == 0 && isHash(hash) {
		t.Base = hash
	}
	return t, nil
}

func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// Diff is what changed since Open, untracked files included, ignored ones
// not, as a patch that git apply takes: binary files as binary patches, and
// text that is not UTF-8 likewise, so that the patch is always valid UTF-8.
// Repositories nested in the tree are left out.
func (t *Tree) Diff(ctx context.Context) ([]byte, error) {
	if t.Base == "" {
		return nil, nil
	}
	patch, err := t.patch(ctx, "add", nil, nil)
	if err != nil || utf8.Valid(patch) {
		return patch, err
	}
	return t.patch(ctx, "add", attributes(patch), nil)
}

// Portable is a patch against Base with the same effect as the given one,
// which is not valid UTF-8, but made of valid UTF-8 only. It fails where the
// patch does not apply.
func (t *Tree) Portable(ctx context.Context, patch []byte) ([]byte, error) {
	if t.Base == "" {
		return nil, errors.New("there is no repository")
	}
	if len(patch) > maxPortable {
		return nil, fmt.Errorf("the patch has %d bytes, more than %d", len(patch), maxPortable)
	}
	out, err := t.patch(ctx, "apply", attributes(patch), patch)
	if err == nil && !utf8.Valid(out) {
		return nil, errors.New("it names files that are not UTF-8")
	}
	return out, err
}

// maxPortable leaves room for quoting below the longest script.
const maxPortable = env.MaxScript - 1<<20

func (t *Tree) patch(ctx context.Context, how string, attrs, patch []byte) ([]byte, error) {
	var s strings.Builder
	fmt.Fprintf(&s, "marker=%s base=%s how=%s\n", marker, t.Base, how)
	fmt.Fprintf(&s, "attributes=%s\n", quote(attrs))
	fmt.Fprintf(&s, "patch=%s\n", quote(patch))
	s.WriteString(diffScript)
	res, err := t.run(ctx, s.String())
	if err != nil {
		return nil, fmt.Errorf("take diff: %w", err)
	}
	rest, ok := bytes.CutPrefix(res.Output, []byte(marker+"\n"))
	switch {
	case res.TimedOut:
		return nil, fmt.Errorf("take diff: git did not end within %v", timeout)
	case res.Truncated:
		return nil, fmt.Errorf("take diff: larger than %d MB", env.SubmissionLimit>>20)
	case !ok || res.ExitCode != 0:
		return nil, fmt.Errorf("take diff: exit code %d: %.500s%s", res.ExitCode, bytes.ToValidUTF8(res.Output, []byte("?")), res.Failure)
	}
	return rest, nil
}

const timeout = 100 * time.Second

func (t *Tree) run(ctx context.Context, script string) (env.Result, error) {
	// In a container every repository is the sandbox's own, whoever owns its
	// files. Elsewhere git's refusal to touch a stranger's stands.
	safe := "false"
	if t.box.Info().Image != "" {
		safe = "true"
	}
	return t.box.Execute(ctx, env.Command{
		Script:  "contained=" + safe + "\n" + gitScript + script,
		Timeout: timeout,
		Markers: []string{marker},
		// Whatever the agent's commands are run with: the scripts are for bash,
		// and a login shell would print what its profile prints.
		Interpreter: []string{"bash", "-c"},
		// A profile that prints would come before the marker; a locale would
		// make bash read our bytes as characters.
		Env: map[string]string{"BASH_ENV": "", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
	})
}

// quote makes one word for the shell of any bytes but NUL, which no text patch
// can hold.
func quote(b []byte) string {
	return "'" + strings.ReplaceAll(string(bytes.ReplaceAll(b, []byte{0}, nil)), "'", `'\''`) + "'"
}
