package process

import (
	"os"
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func exitState(state *os.ProcessState) (code, signal int) { return state.ExitCode(), 0 }
