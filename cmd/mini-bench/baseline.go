//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// baselineCommand is the argument that makes this program, in a container, measure the
// minimum cost of a command there: fork, exec and wait.
const baselineCommand = "baseline"

// runBaseline runs a command n times and prints the median duration in microseconds.
func runBaseline(n int, argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // nothing was written
	fd := null.Fd()
	var durations []float64
	for range n {
		start := time.Now()
		pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{fd, fd, fd}}) //nolint:gosec // the caller is the benchmark
		if err != nil {
			return err
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			return err
		}
		durations = append(durations, float64(time.Since(start).Microseconds()))
	}
	_, err = fmt.Println(median(durations))
	return err
}
