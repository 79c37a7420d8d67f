package repository

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
	"time"
)

// git runs git in a folder, with an environment of its own.
type git struct {
	path  string
	dir   string
	env   []string
	flags []string // before the subcommand
}

// findGit returns a git for the repository itself. It starts no program that a
// repository names and reaches no other machine. Variables that lead git to another
// repository, as in a hook, do not count.
func findGit(contained bool) (git, error) {
	path, err := exec.LookPath("git")
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return git{}, err
	}
	g := git{path: path, flags: []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}}
	if contained {
		g.flags = append(g.flags, "-c", "safe.directory=*")
	}
	g.env = GitEnv(os.Environ())
	return g, nil
}

// GitEnv returns the variables of an environment that git may have, and those that keep
// it from starting programs and from writing to the repository.
func GitEnv(environ []string) (vars []string) {
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); !strings.HasPrefix(name, "GIT_") || name == "GIT_EXEC_PATH" {
			vars = append(vars, kv)
		}
	}
	// No protocol is allowed: git would ask the remote of a partial clone for objects.
	return append(vars, "LC_ALL=C", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
}

// with returns g with more variables.
func (g git) with(vars ...string) git {
	g.env = slices.Concat(g.env, vars)
	return g
}

// gitError is an exit code of git other than 0.
type gitError struct {
	command string
	code    int
	stderr  string
}

func (e *gitError) Error() string {
	if e.stderr != "" {
		return e.stderr
	}
	return fmt.Sprintf("git %s ended with exit code %d", e.command, e.code)
}

// Unwrap lets errors.Is find errNoSpace.
func (e *gitError) Unwrap() error {
	if isFull(e.stderr) {
		return errNoSpace
	}
	return nil
}

func isFull(message string) bool {
	return strings.Contains(message, "No space left on device") || strings.Contains(message, "uota exceeded")
}

// run runs git. It returns what git wrote to standard error; the error is a *gitError,
// that of in or out, or the cause of ctx.
func (g git) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, g.path, append(slices.Clone(g.flags), args...)...) //nolint:gosec // the git of PATH
	stderr := &buffer{limit: 64 << 10, cut: true}
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = g.dir, g.env, in, stderr
	sink := &sink{w: out}
	if out != nil {
		cmd.Stdout = sink
	}
	// Programs that git starts, such as filters, are killed with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	text := string(stderr.bytes)
	if cause := context.Cause(ctx); cause != nil {
		return text, cause
	}
	if sink.err != nil { // git ended because its output is no longer read
		return text, sink.err
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return text, &gitError{args[0], exit.ExitCode(), strings.TrimSpace(text[:min(len(text), 2000)])}
	}
	return text, err
}

// output runs git and returns its output.
func (g git) output(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	out := &buffer{limit: maxOutput}
	_, err := g.run(ctx, reader(in), out, args...)
	return out.bytes, err
}

// text runs git and returns its output without the newline at the end; empty if git
// fails.
func (g git) text(ctx context.Context, args ...string) string {
	out, err := g.output(ctx, nil, args...)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(out), "\n")
}

// list runs git and returns the entries of its output, which end with NULs.
func (g git) list(ctx context.Context, in []byte, args ...string) ([]string, error) {
	out, err := g.output(ctx, in, args...)
	return splitNUL(out), err
}

// do runs git without output.
func (g git) do(ctx context.Context, in []byte, args ...string) error {
	_, err := g.run(ctx, reader(in), io.Discard, args...)
	return err
}

// each runs git and calls fn with each line of its output, while git runs. The line is
// valid only during the call.
func (g git) each(ctx context.Context, in []byte, end byte, fn func(line []byte) error, args ...string) error {
	lines := &lineWriter{end: end, fn: fn}
	_, err := g.run(ctx, reader(in), lines, args...)
	return err
}

// sink remembers the error of a writer.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (n int, err error) {
	n, err = s.w.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// reader returns nil for no input, so that git reads from /dev/null.
func reader(in []byte) io.Reader {
	if in == nil {
		return nil
	}
	return bytes.NewReader(in)
}

// maxOutput bounds an output of git that is kept as a whole, such as a list of changed
// files.
const maxOutput = 128 << 20

var errOutputLimit = errors.New("the output of git is too long")

// buffer keeps at most limit bytes. Further ones are an error, or dropped if cut is set.
type buffer struct {
	bytes []byte
	limit int
	cut   bool
}

func (b *buffer) Write(p []byte) (int, error) {
	room := b.limit - len(b.bytes)
	if len(p) <= room {
		b.bytes = append(b.bytes, p...)
		return len(p), nil
	}
	b.bytes = append(b.bytes, p[:room]...)
	if b.cut {
		return len(p), nil
	}
	return room, errOutputLimit
}

// lineWriter calls fn with each line that is written to it, without its end.
type lineWriter struct {
	end     byte
	fn      func([]byte) error
	partial []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	rest := p
	for {
		i := bytes.IndexByte(rest, w.end)
		if i < 0 {
			w.partial = append(w.partial, rest...)
			return len(p), nil
		}
		line := rest[:i]
		if len(w.partial) > 0 {
			line = append(w.partial, line...)
			w.partial = w.partial[:0]
		}
		if err := w.fn(line); err != nil {
			return 0, err
		}
		rest = rest[i+1:]
	}
}

// splitNUL splits a list of NUL-terminated entries. It drops an incomplete last one.
func splitNUL(list []byte) []string {
	all := strings.Split(string(list), "\x00")
	return all[:len(all)-1]
}

// joinNUL is the inverse of splitNUL. It is not nil, so that git does not read from
// /dev/null by mistake.
func joinNUL(names []string) []byte {
	var b bytes.Buffer
	for _, name := range names {
		b.WriteString(name)
		b.WriteByte(0)
	}
	return append([]byte{}, b.Bytes()...)
}

// IsHash reports whether s is a hash of git.
func IsHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
