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

// Program is a helper ready to be started; there is none for this system.
type Program struct{}

// Load is not available here: the helper runs on Linux only.
func Load([]byte, string) (*Program, error) {
	return nil, fmt.Errorf("load helper: %w", errors.ErrUnsupported)
}

// ToolDir is the folder with mini-tool; there is none.
func (p *Program) ToolDir() string { return "" }

// MakeToolDir is not available here.
func (p *Program) MakeToolDir() error { return errors.ErrUnsupported }

// Close gives the file up.
func (p *Program) Close() error { return nil }

// Path is where a started helper's file is.
const Path = ""

// Box is a helper that is up; there is none on this system.
type Box struct{}

// Start is not available here.
func Start(context.Context, Config) (*Box, error) {
	return nil, &FailedError{Err: fmt.Errorf("start helper: %w", errors.ErrUnsupported)}
}

// Hello returns what the helper said of itself.
func (b *Box) Hello() helper.Hello { return helper.Hello{} }

// PID is the process that was started.
func (b *Box) PID() int { return 0 }

// Execute runs one command.
func (b *Box) Execute(context.Context, env.Command) (env.Result, error) {
	return env.Result{ExitCode: -1, OOMKilled: -1}, env.ErrClosed
}

// Put carries files in.
func (b *Box) Put(context.Context, string, io.Reader) error { return env.ErrClosed }

// Get carries files out.
func (b *Box) Get(context.Context, string, io.Writer) error { return env.ErrClosed }

// Close ends the helper.
func (b *Box) Close(context.Context) error { return nil }
