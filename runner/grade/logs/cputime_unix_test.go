//go:build unix

package logs_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time of this process. Unlike wall time, it does not depend on
// other processes of the machine.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
