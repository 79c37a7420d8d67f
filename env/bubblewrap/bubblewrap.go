package bubblewrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/lazyregexp"
)

// NoLimitsWarning is in the Info.Warnings of every sandbox.
const NoLimitsWarning = "bubblewrap limits neither memory nor processes nor CPU time: a command can use up the whole machine"

// Hints for missing requirements.
const (
	hintInstall    = "install bubblewrap (Debian: apt-get install bubblewrap), or pass --environment-class docker"
	hintNamespaces = "allow this user to create user namespaces (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap), or pass --environment-class docker"
)

// Host starts sandboxes on this machine.
type Host struct {
	bwrap   string // path of the program
	program *child.Program
	home    string // home directory of the user, hidden in every sandbox
}

// Open finds bwrap, version 0.8 or newer, and starts a sandbox as a test. The error is
// an *env.Error, with a hint if the reason is known, or the cause of ctx.
func Open(ctx context.Context, program *child.Program) (*Host, error) {
	h := &Host{program: program, home: homeDir()}
	var err error
	if h.bwrap, err = findBwrap(ctx); err != nil {
		return nil, err
	}
	sandbox, err := h.Start(ctx, Config{})
	if err != nil {
		return nil, err
	}
	if err := sandbox.Close(ctx); err != nil {
		return nil, &env.Error{Status: env.StartFailed, Op: "try bubblewrap", Err: err}
	}
	return h, nil
}

// CheckDir returns an error if a directory of the host cannot be a Config.Dir.
func (h *Host) CheckDir(dir string) error {
	_, err := resolveWorkDir(dir, h.home)
	return err
}

// homeDir returns the home directory to hide in sandboxes; empty if there is none that
// can be hidden.
func homeDir() string {
	dir, err := os.UserHomeDir()
	if err != nil || checkMountPoint(filepath.Clean(dir)) != nil {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return filepath.Clean(dir)
}

var versionPattern = lazyregexp.New(`^bubblewrap (\d+)\.(\d+)[.0-9]*\s*$`)

// findBwrap returns the path of bwrap, after a check of its version.
func findBwrap(ctx context.Context) (bwrap string, err error) {
	fail := func(err error) (string, error) {
		return "", &env.Error{Status: env.StartFailed, Op: "find bubblewrap", Hint: hintInstall, Err: err}
	}
	bwrap, err = exec.LookPath("bwrap")
	if err != nil {
		return fail(errors.New("bwrap is not on the PATH"))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, bwrap, "--version").Output()
	match := versionPattern.FindStringSubmatch(string(out))
	switch {
	case err != nil:
		return fail(fmt.Errorf("%s --version: %w", bwrap, err))
	case match == nil:
		return fail(fmt.Errorf("parse output of %s --version: %.60q", bwrap, out))
	}
	major, _ := strconv.Atoi(match[1]) // digits
	minor, _ := strconv.Atoi(match[2])
	if major == 0 && minor < 8 {
		return fail(fmt.Errorf("%s has version %s, but 0.8 or newer is required", bwrap, strings.TrimSpace(strings.TrimPrefix(string(out), "bubblewrap "))))
	}
	return bwrap, nil
}

// Sandbox is a running sandbox. It implements env.Environment.
type Sandbox struct {
	*child.Environment
	config Config
	info   env.Info
}

var _ env.Environment = (*Sandbox)(nil)

// Start starts a sandbox. The error is an *env.Error, another error if the
// configuration is invalid, or the cause of ctx. If Start fails, no process is left,
// but a disposable directory is not removed.
func (h *Host) Start(ctx context.Context, c Config) (*Sandbox, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure bubblewrap: %w", err)
	}
	work := ""
	if c.Dir != "" {
		var err error
		if work, err = resolveWorkDir(c.Dir, h.home); err != nil {
			return nil, fmt.Errorf("configure bubblewrap: %w", err)
		}
		c.Dir = work
	}
	if err := h.program.MakeToolDir(); err != nil {
		return nil, startError("bubblewrap sandbox", err)
	}
	name := "bubblewrap sandbox"
	if work != "" {
		name += " in " + work
	}
	environ := append(child.FilterEnv(os.Environ()), "TMPDIR=/tmp", "HOME="+cmp.Or(h.home, "/tmp"))
	e, err := child.Start(ctx, child.Config{
		Name:    name,
		Program: h.program,
		Wrapper: append([]string{h.bwrap}, commandLine(c, work, h.home, h.program.ToolDir(), child.ProgramPath)...),
		Env:     environ,
		// The configured variables are for commands only, not for bwrap.
		Setup:   helper.Setup{Env: c.Env, Interpreter: c.Interpreter, ToolDir: toolDir},
		Info:    c.info,
		Timeout: c.Timeout,
	})
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, startError(name, err)
	}
	return &Sandbox{Environment: e, config: c, info: c.info(e.Hello())}, nil
}

// startError wraps the error of a start, with a hint for the most frequent cause.
func startError(name string, err error) error {
	e := &env.Error{Status: env.StartFailed, Op: "start " + name, Err: err}
	if f, ok := errors.AsType[*child.StartError](err); ok {
		for _, message := range []string{"creating new namespace failed", "No permissions to creat", "setting up uid map", "loopback: Failed"} {
			if strings.Contains(f.Output, message) {
				e.Hint = hintNamespaces
			}
		}
	}
	return e
}

// info combines the helper's description with the configuration.
func (c Config) info(h helper.Hello) env.Info {
	i := h.Info()
	i.Network, i.Disposable = c.Network == NetworkHost, c.Dir == "" || c.Disposable
	i.Warnings = append([]string{NoLimitsWarning}, c.Warnings...)
	for _, m := range c.Mounts {
		i.Disposable = i.Disposable && !m.ReadWrite
	}
	if len(c.Interpreter) > 0 && path.Base(h.Shell) != path.Base(c.Interpreter[0]) {
		effect := "there is no other shell, so no command can run"
		if h.Shell != "" {
			effect = "commands run with " + h.Shell
		}
		i.Warnings = append(i.Warnings, fmt.Sprintf("the sandbox has no %s; %s", c.Interpreter[0], effect))
	}
	return i
}

// Info describes the sandbox.
func (s *Sandbox) Info() env.Info { return s.info }

// Close kills every process in the sandbox and removes a disposable directory, even if
// ctx has ended. It waits some seconds at most for the processes.
func (s *Sandbox) Close(ctx context.Context) error {
	err := s.Environment.Close(ctx)
	if s.config.Disposable {
		err = errors.Join(err, scratch.Remove(s.config.Dir))
	}
	return err
}
