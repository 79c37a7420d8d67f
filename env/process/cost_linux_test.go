package process_test

import (
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/minibench/mini/env/process"
)

// BenchmarkCost compares a command with what it costs at the least: fork, exec
// and wait of the same shell in the same process. Both take turns, so that a busy
// machine slows both.
func BenchmarkCost(b *testing.B) {
	shell, ok := process.FindShell(nil, os.Environ())
	if !ok {
		b.Skip("there is no shell")
	}
	const turn = 20
	var bare, commands []time.Duration
	for b.Loop() {
		for range turn {
			began := time.Now()
			floor(b, shell[0])
			bare = append(bare, time.Since(began))
		}
		r, err := process.NewOwner()
		if err != nil {
			b.Fatal(err)
		}
		for range turn {
			began := time.Now()
			res, err := r.Run(b.Context(), process.Command{Script: "true", Dir: "/", Env: os.Environ(), Timeout: time.Minute}, io.Discard)
			if err != nil || res.ExitCode != 0 {
				b.Fatalf("%+v, %v", res, err)
			}
			commands = append(commands, time.Since(began))
		}
		if err := r.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(bare)
	slices.Sort(commands)
	least, median := bare[len(bare)/2], commands[len(commands)/2]
	b.ReportMetric(float64(least.Microseconds()), "bare-us")
	b.ReportMetric(float64(median.Microseconds()), "command-us")
	b.ReportMetric(float64(median)/float64(least), "ratio")
}

func floor(b *testing.B, shell string) {
	b.Helper()
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer syscall.Close(null)
	fd := uintptr(null)
	pid, err := syscall.ForkExec(shell, []string{shell, "-c", "true"}, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{fd, fd, fd}})
	if err != nil {
		b.Fatal(err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFlood is 200 MB of output.
func BenchmarkFlood(b *testing.B) {
	r, err := process.NewOwner()
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close(b.Context())
	for b.Loop() {
		res, err := r.Run(b.Context(), process.Command{Script: "head -c 200000000 /dev/zero", Dir: "/", Env: os.Environ(), Timeout: time.Minute}, io.Discard)
		if err != nil || res.Bytes != 200_000_000 {
			b.Fatalf("%+v, %v", res, err)
		}
	}
}
