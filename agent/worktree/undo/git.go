package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/minibench/mini/env/helper/repository"
	"github.com/minibench/mini/env/local"
)

// findGit returns the path of git.
func findGit() (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrGitNotFound, err)
	}
	return path, nil
}

// gitEnv returns the environment of git: this process's environment without secrets, as
// repository.GitEnv restricts it, plus extra.
func gitEnv(hidden []string, extra ...string) []string {
	return append(repository.GitEnv(local.WithoutSecrets(os.Environ(), hidden)), extra...)
}

// gitCall configures one run of git.
type gitCall struct {
	dir      string
	env      []string
	in       io.Reader // standard input; nil for none
	maxBytes int       // limit of the output; 0 means no limit
	out      io.Writer // receives the output instead; nil for none
}

var errTruncated = errors.New("output truncated")

// runGit runs git and returns its output. If the output was truncated, the error
// is errTruncated.
func runGit(ctx context.Context, git string, c gitCall, args ...string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, git, args...) //nolint:gosec // the git of PATH; no shell reads the arguments
	cmd.Dir, cmd.Env, cmd.Stdin = c.dir, c.env, c.in
	cmd.SysProcAttr = ownProcessGroup()
	out, stderr := &limitedBuffer{limit: c.maxBytes, onFull: cancel}, &limitedBuffer{limit: 2000}
	cmd.Stdout, cmd.Stderr = out, stderr
	if c.out != nil {
		cmd.Stdout = c.out
	}
	err := cmd.Run()
	switch {
	case out.truncated:
		return out.buf.Bytes(), errTruncated
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		text := strings.TrimSpace(stderr.buf.String())
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, text)
	}
	return out.buf.Bytes(), nil
}

// ownProcessGroup starts git in its own process group, so that Ctrl-C does not
// reach it; mini ends it through ctx.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// limitedBuffer keeps the beginning of what is written to it, at most limit
// bytes, and calls onFull for further bytes. A limit of 0 means no limit.
type limitedBuffer struct {
	buf       bytes.Buffer // not embedded: its ReadFrom would ignore the limit
	limit     int
	onFull    func()
	truncated bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	remaining := b.limit - b.buf.Len()
	if b.limit == 0 || len(p) <= remaining {
		return b.buf.Write(p)
	}
	b.truncated = true
	_, _ = b.buf.Write(p[:remaining]) // never fails
	if b.onFull != nil {
		b.onFull()
	}
	return len(p), nil
}

// userRepository is the user's repository. Its settings are copiedSettings and
// core.excludesfile.
type userRepository struct {
	git         string
	top, common string // top of the working tree, and git directory shared by all worktrees; "" if there is none
	settings    map[string]string
	hiddenEnv   []string // environment variables removed for git
}

// findTime bounds the time for the location and the settings of a repository. Git would wait for
// a pipe that a configuration file includes.
const findTime = 10 * time.Second

// findRepository returns the repository around a folder.
func findRepository(ctx context.Context, git, dir string, hidden []string) (*userRepository, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, findTime, fmt.Errorf("git did not read its settings within %v", findTime))
	defer cancel()
	r := &userRepository{git: git, top: dir, hiddenEnv: hidden}
	out, err := r.run(ctx, "rev-parse", "--show-toplevel", "--git-common-dir")
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrNoRepository, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != 2 {
		return nil, fmt.Errorf("%w: its path contains a newline", ErrNoRepository)
	}
	r.top, r.common = lines[0], lines[1]
	if !filepath.IsAbs(r.common) {
		r.common = filepath.Join(dir, r.common)
	}
	// The top must have a .git: core.worktree can name any folder, for example
	// the root.
	if _, err := os.Lstat(filepath.Join(r.top, ".git")); err != nil {
		return nil, fmt.Errorf("%w: core.worktree is %s", ErrNoRepository, r.top)
	}
	return r, r.readSettings(ctx)
}

// findTree returns the repository around a folder or, if git finds none, the folder itself as one
// without a git directory.
func findTree(ctx context.Context, git, dir string, hidden []string) (*userRepository, error) {
	r, err := findRepository(ctx, git, dir, hidden)
	if !errors.Is(err, ErrNoRepository) {
		return r, err
	}
	plain := userRepository{git: git, top: dir, hiddenEnv: hidden}
	if _, inGit := plain.run(ctx, "rev-parse", "--git-dir"); inGit == nil {
		return nil, err // a bare repository, or one with its files elsewhere
	}
	if err := checkSize(ctx, dir); err != nil {
		return nil, err
	}
	return &userRepository{git: git, top: realPath(dir), hiddenEnv: hidden}, nil
}

// checkSize returns ErrTooLarge if a folder has too many files or bytes. Nested repositories do not count.
func checkSize(ctx context.Context, dir string) error {
	files, bytes := 0, int64(0)
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return nil //nolint:nilerr // git cannot read it either
		case d.IsDir():
			if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil && path != dir || d.Name() == ".git" {
				return fs.SkipDir
			}
			files++ // many folders take long too
		default:
			files++
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
		}
		switch {
		case files > maxFolderFiles:
			return fmt.Errorf("%w: it has more than %d files", ErrTooLarge, maxFolderFiles)
		case bytes > maxFolder:
			return fmt.Errorf("%w: it has more than %d MB", ErrTooLarge, maxFolder>>20)
		}
		return nil
	})
}

// copiedSettings are the settings that affect files but run no programs.
var copiedSettings = []string{
	"core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "extensions.objectformat",
}

func (r *userRepository) readSettings(ctx context.Context) error {
	out, err := r.run(ctx, "config", "-z", "--get-regexp", `^(core|extensions)\.`)
	if ctx.Err() != nil {
		return err
	}
	r.settings = map[string]string{} // git fails if there are no such settings
	for _, entry := range splitNul(out) {
		key, value, _ := strings.Cut(entry, "\n")
		if slices.Contains(copiedSettings, key) {
			r.settings[key] = value
		}
	}
	if out, err := r.run(ctx, "config", "--type=path", "--get", "core.excludesfile"); err == nil {
		// Git would wait for a pipe.
		file := strings.TrimSuffix(string(out), "\n")
		if info, err := os.Stat(file); err != nil || info.Mode().IsRegular() {
			r.settings["core.excludesfile"] = file
		}
	}
	return ctx.Err()
}

// run runs git on the repository, for commands that neither write nor start programs.
func (r *userRepository) run(ctx context.Context, args ...string) ([]byte, error) {
	args = append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)
	return runGit(ctx, r.git, gitCall{dir: r.top, env: gitEnv(r.hiddenEnv)}, args...)
}

// runShadow runs git on the store with one of its indexes.
func (s *Snapshot) runShadow(ctx context.Context, index string, in io.Reader, args ...string) ([]byte, error) {
	return runGit(ctx, s.git, gitCall{dir: s.meta.Top, env: s.shadowEnv(index), in: in}, args...)
}

func (s *Snapshot) shadowEnv(index string) []string {
	dir := filepath.Join(s.store, "git")
	return gitEnv(
		s.hiddenEnv,
		"GIT_DIR="+dir, "GIT_WORK_TREE="+s.meta.Top, "GIT_INDEX_FILE="+filepath.Join(dir, index),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_LITERAL_PATHSPECS=1",
	)
}
