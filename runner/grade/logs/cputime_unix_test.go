//go:build unix

package logs_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used of the processors so far: unlike the
// clock's, it says nothing of what else the machine does.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
