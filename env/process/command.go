package process

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/env"
)

// Command is a shell script and its limits.
type Command struct {
	// Shell is the interpreter with its flags; the script is appended as the last
	// argument. Empty means bash -c. If bash is missing, sh is used. For
	// env.RepositoryProgram this program is started again under that name, with the
	// script as its standard input; env.KillProgram is not started: Run kills every process
	// of the Runner (both Linux only).
	Shell []string
	// Script is the script, at most env.MaxScript bytes, without NUL bytes.
	Script string
	// Dir is the working directory, an absolute path.
	Dir string
	// Env is the complete environment, as NAME=value (see MergeEnv).
	Env []string
	// Timeout limits the run time; zero means no limit besides the context.
	Timeout time.Duration
	// Expired, if not nil, replaces Timeout: the command times out when the channel
	// delivers a value.
	Expired <-chan time.Time
	// Scope, if not nil, makes the command nested in another one, or allows other
	// commands to be nested in it. Linux only.
	Scope *Scope
	// User runs the command as this user (a name or number, or USER:GROUP); empty means the user of this
	// process. Linux only.
	User string
	// OutputLimit is the number of output bytes to keep; zero means
	// env.DefaultOutputLimit. Values below env.MinOutputLimit are raised to it.
	OutputLimit int
	// Markers are the submission markers (see env.Command.SubmissionMarkers).
	Markers []string
}

// MergeEnv adds variables to an environment in NAME=value form and overrides existing
// ones. It does not modify base. Of duplicates in base the last one is used.
func MergeEnv(base []string, added map[string]string) []string {
	last := make(map[string]int, len(base))
	for i, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	merged := make([]string, 0, len(base)+len(added))
	for i, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		if _, replaced := added[name]; !replaced && last[name] == i {
			merged = append(merged, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		merged = append(merged, name+"="+added[name])
	}
	return merged
}

// IsValidScript reports whether the text of a script can be run: it is not too long and
// has no NUL byte.
func IsValidScript(script string) bool {
	return len(script) <= env.MaxScript && strings.IndexByte(script, 0) < 0
}

// problem returns a sentence that says why the command cannot run; empty if no reason
// is known before it is started.
func (c Command) problem() string {
	if len(c.Script) > env.MaxScript {
		return fmt.Sprintf("The command is %d bytes long; at most %d are run.", len(c.Script), env.MaxScript)
	}
	if i := strings.IndexByte(c.Script, 0); i >= 0 && !c.isRepositoryProgram() {
		return fmt.Sprintf("The command contains a NUL byte (at offset %d); no shell can run it.", i)
	}
	for _, kv := range c.Env {
		name, _, found := strings.Cut(kv, "=")
		if !found || name == "" || strings.IndexByte(kv, 0) >= 0 {
			return fmt.Sprintf("The environment variable %q cannot be passed to a command.", name)
		}
	}
	info, err := os.Stat(c.Dir)
	switch {
	case err != nil:
		return fmt.Sprintf("The working directory %s cannot be used: %v.", c.Dir, rootCause(err))
	case !info.IsDir():
		return fmt.Sprintf("The working directory %s is not a directory.", c.Dir)
	}
	return ""
}

// isRepositoryProgram reports whether this program itself runs the command, under the
// name env.RepositoryProgram.
func (c Command) isRepositoryProgram() bool {
	return len(c.Shell) == 1 && c.Shell[0] == env.RepositoryProgram
}

// environ returns the command's environment with PWD set, so that a directory reached
// through a symbolic link keeps its name, as in a login shell.
func (c Command) environ() []string {
	for _, kv := range c.Env {
		if kv == "PWD="+c.Dir {
			return c.Env
		}
	}
	return MergeEnv(c.Env, map[string]string{"PWD": filepath.Clean(c.Dir)})
}

// notRun returns the result of a command that was not run.
func notRun(reason string) env.Result {
	return env.Result{ExitCode: -1, OOMKilled: -1, Failure: reason}
}

// rootCause returns the innermost error that err wraps. It omits the operation and the
// path, which the caller's sentence names already.
func rootCause(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			return err
		}
		err = u.Unwrap()
	}
}
