package child

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// Config configures an Environment.
type Config struct {
	// Name identifies the sandbox in errors.
	Name string
	// Program is the helper to start.
	Program *Program
	// Wrapper is a command line that builds a sandbox and then executes ProgramPath with
	// helper.ProgramArg.
	// Empty means that the helper is started directly.
	Wrapper []string
	// NoTrace prevents commands that run as root from tracing processes outside the
	// sandbox, such as this program. It is for helpers without a Wrapper.
	NoTrace bool
	// Env is the environment of the helper, as NAME=value. Commands inherit it.
	Env []string
	// Setup holds the settings for commands.
	Setup helper.Setup
	// Info returns the Info of ToolRequest.Nested; nil means an empty Info.
	Info func(helper.Hello) env.Info
	// Timeout is the timeout of commands that set none; zero means
	// helper.DefaultTimeout.
	Timeout time.Duration
}

// Validate returns an error for one invalid setting, if any, among those that the
// sandboxes on this machine have in common.
func Validate(timeout time.Duration, interpreter []string, environ map[string]string) error {
	switch {
	case timeout < 0:
		return fmt.Errorf("timeout must not be negative, is %v", timeout)
	case len(interpreter) > 0 && interpreter[0] == "":
		return errors.New("interpreter has an empty name")
	}
	for name, value := range environ {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("environment variable %q is invalid", name)
		}
	}
	return nil
}

// StartError means that no process could be started, or that it did not become a
// helper. Output is the beginning of what the process wrote to standard error (see
// helper.StderrBuffer).
type StartError struct {
	Output string
	Err    error
}

func (e *StartError) Error() string {
	if e.Output == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + ": " + e.Output
}

func (e *StartError) Unwrap() error { return e.Err }
