//go:build !unix

package family

import (
	"os/exec"
	"slices"
)

// Family is for systems without process groups: the program itself is killed.
type Family struct{ cmd *exec.Cmd }

// New prepares a program that has not been started.
func New(cmd *exec.Cmd, environ []string) *Family {
	cmd.Env = slices.Clone(environ)
	return &Family{cmd}
}

// Kill ends the program.
func (f *Family) Kill() error { return f.cmd.Process.Kill() }

// End does nothing.
func (f *Family) End() {}
