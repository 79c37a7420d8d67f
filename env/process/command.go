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

// Command is a script and the bounds it runs in.
type Command struct {
	// Shell is the interpreter and its flags; the script follows as the next
	// argument. Empty means bash -c. A missing bash is replaced by sh.
	Shell []string
	// Script is the text to run, at most env.MaxScript bytes, without NUL.
	Script string
	// Dir is the working directory, an absolute path.
	Dir string
	// Env is the whole environment, as NAME=value (see Merge).
	Env []string
	// Timeout bounds the run; zero means no bound but the context.
	Timeout time.Duration
	// Expired, where it is not nil, takes the place of Timeout: the time is over
	// when something comes from it.
	Expired <-chan time.Time
	// Place, where it is not nil, is where the command runs: inside of another
	// one, or as one that others may run inside of. Only on Linux.
	Place *Place
	// OutputLimit is how many bytes are kept; zero means
	// env.DefaultOutputLimit, less than env.MinOutputLimit means that.
	OutputLimit int
	// Markers are the first lines that lift the limit to
	// env.SubmissionLimit.
	Markers []string
}

// Merge adds variables to an environment in NAME=value form; added ones win.
// The base is not changed, and duplicates in it keep their last value.
func Merge(base []string, added map[string]string) []string {
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

// Fits says that a script can be run as far as its text is concerned.
func Fits(script string) bool {
	return len(script) <= env.MaxScript && strings.IndexByte(script, 0) < 0
}

// obstacle says in a sentence why the command cannot run; empty when nothing
// is in the way that can be seen beforehand.
func (c Command) obstacle() string {
	if len(c.Script) > env.MaxScript {
		return fmt.Sprintf("The command is %d bytes long; at most %d are run.", len(c.Script), env.MaxScript)
	}
	if i := strings.IndexByte(c.Script, 0); i >= 0 {
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
		return fmt.Sprintf("The working directory %s cannot be used: %v.", c.Dir, reason(err))
	case !info.IsDir():
		return fmt.Sprintf("The working directory %s is not a directory.", c.Dir)
	}
	return ""
}

// environ is the command's environment with PWD set, so that a directory
// reached through a symbolic link keeps its name, as under a login.
func (c Command) environ() []string {
	for _, kv := range c.Env {
		if kv == "PWD="+c.Dir {
			return c.Env
		}
	}
	return Merge(c.Env, map[string]string{"PWD": filepath.Clean(c.Dir)})
}

// failure is the result of a command that never ran.
func failure(why string) env.Result {
	return env.Result{ExitCode: -1, OOMKilled: -1, Failure: why}
}

// reason is an error without the operation and path that the sentence around
// it already names.
func reason(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			return err
		}
		err = u.Unwrap()
	}
}
