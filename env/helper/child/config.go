package child

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// Config says what to start, and what to tell it.
type Config struct {
	// Name says in errors which sandbox it is.
	Name    string
	Program *Program
	// Wrapper is a command line that ends in running Path, all of it; empty
	// means that the helper is started as it is.
	Wrapper []string
	// NoTrace keeps commands of root from tracing processes outside of the sandbox,
	// as this program. It is for helpers without a Wrapper.
	NoTrace bool
	// Env is the environment of the helper, in NAME=value form, which
	// commands inherit.
	Env []string
	// Setup says where and how commands run.
	Setup helper.Setup
	// Info is what those who are asked by a command see of the sandbox (see
	// env.ToolRequest); nil means what the helper says.
	Info func(helper.Hello) env.Info
	// Timeout bounds commands that name none; zero means helper.DefaultTimeout.
	Timeout time.Duration
}

// Validate reports the first mistake in what sandboxes on this machine have in
// common.
func Validate(timeout time.Duration, interpreter []string, environ map[string]string) error {
	switch {
	case timeout < 0:
		return fmt.Errorf("timeout must not be negative, is %v", timeout)
	case len(interpreter) > 0 && interpreter[0] == "":
		return errors.New("interpreter has an empty name")
	}
	for name, value := range environ {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("environment variable %q cannot be passed on", name)
		}
	}
	return nil
}

// FailedError says that what was started did not become a helper. Text is what
// it wrote about that, a few lines at most.
type FailedError struct {
	Text string
	Err  error
}

func (e *FailedError) Error() string {
	if e.Text == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + ": " + e.Text
}

func (e *FailedError) Unwrap() error { return e.Err }
