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

// Unbounded is what Info warns of, in every sandbox.
const Unbounded = "bubblewrap bounds neither memory nor processes nor processor time: a command can take the whole machine"

// What to do about what is missing.
const (
	hintInstall    = "install it (Debian: apt-get install bubblewrap), or use another environment: --environment-class docker"
	hintNamespaces = "this user may not make user namespaces; allow it (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap), or use --environment-class docker"
)

// Machine is a host that can make sandboxes.
type Machine struct {
	bwrap   string // its path
	program *child.Program
	home    string // the user's, hidden in every sandbox
}

// Open finds bwrap, version 0.8 or newer, and tries a sandbox with it. The error
// is an *env.Error that says what to do, or the cause of ctx.
func Open(ctx context.Context, program *child.Program) (*Machine, error) {
	m := &Machine{program: program, home: home()}
	var err error
	if m.bwrap, err = find(ctx); err != nil {
		return nil, err
	}
	box, err := m.Start(ctx, Config{})
	if err != nil {
		return nil, err
	}
	if err := box.Close(ctx); err != nil {
		return nil, &env.Error{Status: env.StartFailed, Op: "try bubblewrap", Err: err}
	}
	return m, nil
}

// Suits says why a folder of the host's cannot be a Config.Dir; nil where it can.
func (m *Machine) Suits(dir string) error {
	_, err := folder(dir, m.home)
	return err
}

// home is the user's home as the sandbox needs to know it: empty where there is
// none that could be hidden.
func home() string {
	dir, err := os.UserHomeDir()
	if err != nil || mountPoint(filepath.Clean(dir)) != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Clean(dir)
}

var versionPattern = lazyregexp.New(`^bubblewrap (\d+)\.(\d+)[.0-9]*\s*$`)

// find returns the path of bwrap.
func find(ctx context.Context) (bwrap string, err error) {
	fail := func(err error) (string, error) {
		return "", &env.Error{Status: env.StartFailed, Op: "find bubblewrap", Hint: hintInstall, Err: err}
	}
	bwrap, err = exec.LookPath("bwrap")
	if err != nil {
		return fail(errors.New("there is no bwrap on the PATH"))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, bwrap, "--version").Output()
	found := versionPattern.FindStringSubmatch(string(out))
	switch {
	case err != nil:
		return fail(fmt.Errorf("%s --version: %w", bwrap, err))
	case found == nil:
		return fail(fmt.Errorf("%s --version says %.60q", bwrap, out))
	}
	major, _ := strconv.Atoi(found[1]) // digits
	minor, _ := strconv.Atoi(found[2])
	if major == 0 && minor < 8 {
		return fail(fmt.Errorf("%s is version %s, and 0.8 or newer is needed", bwrap, strings.TrimSpace(strings.TrimPrefix(string(out), "bubblewrap "))))
	}
	return bwrap, nil
}

// Sandbox is one that is up. It implements env.Environment.
type Sandbox struct {
	*child.Box
	config Config
	info   env.Info
}

var _ env.Environment = (*Sandbox)(nil)

// Start brings up a sandbox. The error is an *env.Error, a plain one when the
// configuration is wrong, or the cause of ctx; nothing is left behind, but a
// disposable folder stays.
func (m *Machine) Start(ctx context.Context, c Config) (*Sandbox, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure bubblewrap: %w", err)
	}
	work := ""
	if c.Dir != "" {
		var err error
		if work, err = folder(c.Dir, m.home); err != nil {
			return nil, fmt.Errorf("configure bubblewrap: %w", err)
		}
		c.Dir = work
	}
	if err := m.program.MakeToolDir(); err != nil {
		return nil, failure("bubblewrap sandbox", err)
	}
	name := "bubblewrap sandbox"
	if work != "" {
		name += " in " + work
	}
	environ := append(child.Plain(os.Environ()), "TMPDIR=/tmp", "HOME="+cmp.Or(m.home, "/tmp"))
	box, err := child.Start(ctx, child.Config{
		Name:    name,
		Program: m.program,
		Wrapper: append([]string{m.bwrap}, commandLine(c, work, m.home, m.program.ToolDir(), child.Path)...),
		Env:     environ,
		// The configured variables are for commands, and not for bwrap.
		Setup:   helper.Setup{Env: c.Env, Interpreter: c.Interpreter, ToolDir: toolDir},
		Info:    c.info,
		Timeout: c.Timeout,
	})
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, failure(name, err)
	}
	return &Sandbox{Box: box, config: c, info: c.info(box.Hello())}, nil
}

// failure says what bwrap said, and what to do about the most frequent cause.
func failure(name string, err error) error {
	e := &env.Error{Status: env.StartFailed, Op: "start " + name, Err: err}
	if f, ok := errors.AsType[*child.FailedError](err); ok {
		for _, sign := range []string{"creating new namespace failed", "No permissions to creat", "setting up uid map", "loopback: Failed"} {
			if strings.Contains(f.Text, sign) {
				e.Hint = hintNamespaces
			}
		}
	}
	return e
}

// info joins what the helper says and what is known of the configuration.
func (c Config) info(h helper.Hello) env.Info {
	i := h.Info()
	i.Network, i.Disposable = c.Network == Host, c.Dir == "" || c.Disposable
	i.Warnings = append([]string{Unbounded}, c.Warnings...)
	for _, m := range c.Mounts {
		i.Disposable = i.Disposable && !m.ReadWrite
	}
	if len(c.Interpreter) > 0 && path.Base(h.Shell) != path.Base(c.Interpreter[0]) {
		what := "no other shell; no command can run"
		if h.Shell != "" {
			what = "commands run with " + h.Shell
		}
		i.Warnings = append(i.Warnings, fmt.Sprintf("the sandbox has no %s; %s", c.Interpreter[0], what))
	}
	return i
}

// Info describes the sandbox from within.
func (s *Sandbox) Info() env.Info { return s.info }

// Close ends every process in the sandbox, and removes a disposable folder. It
// returns when all is gone, also when ctx has ended; some seconds bound it.
func (s *Sandbox) Close(ctx context.Context) error {
	err := s.Box.Close(ctx)
	if s.config.Disposable {
		err = errors.Join(err, scratch.Remove(s.config.Dir))
	}
	return err
}
