//go:build !linux

package child

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// Program is a helper binary; it is not supported on this system.
type Program struct{}

// Load returns an error: the helper runs on Linux only.
func Load([]byte, string) (*Program, error) {
	return nil, fmt.Errorf("load helper: %w", errors.ErrUnsupported)
}

// ToolDir returns "".
func (p *Program) ToolDir() string { return "" }

// MakeToolDir returns an error.
func (p *Program) MakeToolDir() error { return errors.ErrUnsupported }

// Close does nothing.
func (p *Program) Close() error { return nil }

// ProgramPath is empty on this system.
const ProgramPath = ""

// Environment is a running helper; it is not supported on this system.
type Environment struct{}

// Start returns an error.
func Start(context.Context, Config) (*Environment, error) {
	return nil, &StartError{Err: fmt.Errorf("start helper: %w", errors.ErrUnsupported)}
}

// Hello returns an empty message.
func (e *Environment) Hello() helper.Hello { return helper.Hello{} }

// PID returns 0.
func (e *Environment) PID() int { return 0 }

// Execute returns an error.
func (e *Environment) Execute(context.Context, env.Command) (env.Result, error) {
	return env.Result{ExitCode: -1, OOMKilled: -1}, env.ErrClosed
}

// Put returns an error.
func (e *Environment) Put(context.Context, string, io.Reader) error { return env.ErrClosed }

// Get returns an error.
func (e *Environment) Get(context.Context, string, io.Writer) error { return env.ErrClosed }

// Close does nothing.
func (e *Environment) Close(context.Context) error { return nil }
