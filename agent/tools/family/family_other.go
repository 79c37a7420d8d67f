//go:build !linux && !darwin

package family

import (
	"os/exec"
	"slices"
)

// Family is for systems whose process groups mini does not use: the program itself
// is killed.
type Family struct{ cmd *exec.Cmd }

// New prepares a program that has not been started.
func New(cmd *exec.Cmd, environ []string) *Family {
	cmd.Env = slices.Clone(environ)
	return &Family{cmd}
}

// Run starts the program and waits for it.
func (f *Family) Run() error { return f.cmd.Run() }

// Start starts the program.
func (f *Family) Start() error { return f.cmd.Start() }

// Wait waits for the program.
func (f *Family) Wait() error { return f.cmd.Wait() }

// Kill ends the program.
func (f *Family) Kill() error { return f.cmd.Process.Kill() }
