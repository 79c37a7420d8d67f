package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/minibench/mini/env/local"
)

// program finds git.
func program() (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoGit, err)
	}
	return path, nil
}

// environ is this process's environment without secrets and what leads git
// elsewhere, and with what keeps it from running or writing anything of the
// repository's.
func environ(hidden []string, more ...string) []string {
	var vars []string
	for _, v := range local.WithoutSecrets(os.Environ(), hidden) {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "GIT_") || name == "GIT_EXEC_PATH" {
			vars = append(vars, v)
		}
	}
	vars = append(
		vars, "LC_ALL=C", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_PAGER=cat",
	)
	return append(vars, more...)
}

// call is one run of git.
type call struct {
	dir  string
	env  []string
	in   io.Reader
	most int // bytes of output, where it may be cut; 0 takes all
}

var errCut = errors.New("there is more than is asked for")

// run runs git and returns what it printed; where it was cut, errCut comes
// with it.
func run(ctx context.Context, git string, c call, args ...string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, git, args...) //nolint:gosec // the git of PATH; no shell reads the arguments
	cmd.Dir, cmd.Env, cmd.Stdin = c.dir, c.env, c.in
	cmd.SysProcAttr = apart()
	out, words := &bounded{most: c.most, full: cancel}, &bounded{most: 2000}
	cmd.Stdout, cmd.Stderr = out, words
	err := cmd.Run()
	switch {
	case out.cut:
		return out.kept.Bytes(), errCut
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		text := strings.TrimSpace(words.kept.String())
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, text)
	}
	return out.kept.Bytes(), nil
}

// apart starts git in a process group of its own: Ctrl-C is for mini, and git ends
// with the context.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// bounded keeps the beginning of what is written.
type bounded struct {
	kept bytes.Buffer // not embedded: it would read past the bound
	most int
	full func()
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.kept.Len()
	if b.most == 0 || len(p) <= room {
		return b.kept.Write(p)
	}
	b.cut = true
	_, _ = b.kept.Write(p[:room]) // never fails
	if b.full != nil {
		b.full()
	}
	return len(p), nil
}

// repository is the user's.
type repository struct {
	git         string
	top, common string
	settings    map[string]string
	hidden      []string // variables that git does not get
}

// find asks git for the repository around a folder.
func find(ctx context.Context, git, dir string, hidden []string) (*repository, error) {
	r := &repository{git: git, top: dir, hidden: hidden}
	out, err := r.ask(ctx, "rev-parse", "--show-toplevel", "--git-common-dir")
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrNoRepository, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != 2 {
		return nil, fmt.Errorf("%w that can be read: its folder has a line end in its name", ErrNoRepository)
	}
	r.top, r.common = lines[0], lines[1]
	if !filepath.IsAbs(r.common) {
		r.common = filepath.Join(dir, r.common)
	}
	// A repository can say that its files are anywhere, say in the root.
	if _, err := os.Lstat(filepath.Join(r.top, ".git")); err != nil {
		return nil, fmt.Errorf("%w here: its settings name %s as the place of its files", ErrNoRepository, r.top)
	}
	return r, r.readSettings(ctx)
}

// wanted are the settings that say what files are, and name no program.
var wanted = []string{
	"core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "extensions.objectformat",
}

func (r *repository) readSettings(ctx context.Context) error {
	out, err := r.ask(ctx, "config", "-z", "--get-regexp", `^(core|extensions)\.`)
	if ctx.Err() != nil {
		return err
	}
	r.settings = map[string]string{} // git fails where there is none
	for _, entry := range split(out) {
		key, value, _ := strings.Cut(entry, "\n")
		if slices.Contains(wanted, key) {
			r.settings[key] = value
		}
	}
	if out, err := r.ask(ctx, "config", "--type=path", "--get", "core.excludesfile"); err == nil {
		r.settings["core.excludesfile"] = strings.TrimSuffix(string(out), "\n")
	}
	return ctx.Err()
}

// ask runs git on the repository itself, for what runs and writes nothing.
func (r *repository) ask(ctx context.Context, args ...string) ([]byte, error) {
	args = append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)
	return run(ctx, r.git, call{dir: r.top, env: environ(r.hidden)}, args...)
}

// shadow runs git on the store, with one of its indexes.
func (s *Snapshot) shadow(ctx context.Context, index string, in io.Reader, args ...string) ([]byte, error) {
	return run(ctx, s.git, call{dir: s.noted.Top, env: s.shadowEnv(index), in: in}, args...)
}

func (s *Snapshot) shadowEnv(index string) []string {
	dir := filepath.Join(s.store, "git")
	return environ(
		s.hidden,
		"GIT_DIR="+dir, "GIT_WORK_TREE="+s.noted.Top, "GIT_INDEX_FILE="+filepath.Join(dir, index),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_LITERAL_PATHSPECS=1",
	)
}
