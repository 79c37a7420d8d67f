//go:build !unix

package host

import (
	"os/exec"
	"slices"
)

// family is for systems without process groups: the program itself is killed.
type family struct{ cmd *exec.Cmd }

func newFamily(cmd *exec.Cmd, environ []string) *family {
	cmd.Env = slices.Clone(environ)
	return &family{cmd}
}

func (f *family) kill() error { return f.cmd.Process.Kill() }

func (f *family) end() error { return nil }
