//go:build !unix

package decider

import "os/exec"

// alone is for systems without process groups: the program itself is killed.
func alone(cmd *exec.Cmd) func() error {
	return func() error { return cmd.Process.Kill() }
}
