package live

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/minibench/mini/internal/ptytest"
	"github.com/minibench/mini/runner"
)

// BenchmarkView measures the CPU usage of a view of 64 workers at 3000 events a second, in
// percent of one core, including the reader of the terminal.
func BenchmarkView(b *testing.B) {
	const length = 10 * time.Second
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	for b.Loop() {
		p := ptytest.Open(b, 160, 50)
		os.Stdin = p.TTY                                     // the source of keys
		go func() { _, _ = io.Copy(io.Discard, p.Master) }() // ends when the terminal is closed
		without := cpuTime(b, func() { sendSteps(func(runner.Event) {}, length) })
		with := cpuTime(b, func() {
			live := Start(Config{Terminal: p.TTY, Title: Title{Dataset: "verified", Model: "m", Folder: "runs/x"}, Controller: &recordingController{}})
			sendSteps(live.HandleEvent, length)
			if err := live.Close(); err != nil {
				b.Error(err)
			}
		})
		b.ReportMetric(100*(with-without).Seconds()/length.Seconds(), "%core")
		b.ReportMetric(0, "ns/op")
	}
}

// sendSteps sends the events of 64 workers at a constant rate, three events per step.
func sendSteps(tell func(runner.Event), length time.Duration) {
	const workers, perSecond = 64, 3000
	tell(runner.Event{Type: runner.RunStarted, Time: time.Now(), Total: workers, Workers: workers})
	begin, told := time.Now(), 0
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for now := range tick.C {
		if now.Sub(begin) >= length {
			return
		}
		for due := int(now.Sub(begin).Seconds() * perSecond); told < due; told++ {
			step := told / (3 * workers)
			e := runner.Event{Type: runner.PhaseChanged, Time: now, Instance: fmt.Sprintf("sympy__sympy-%d", told/3%workers), Attempt: 1, Step: step, Cost: float64(step) / 100}
			switch e.Command = fmt.Sprintf("python -m pytest -x -q tests/test_%d.py 2>&1 | tail -30", told/3); told % 3 {
			case 0:
				e.Phase, e.Command = runner.Thinking, ""
			case 1:
				e.Phase = runner.Running
			case 2:
				e.Type = runner.Step
			}
			tell(e)
		}
	}
}

// cpuTime returns the CPU time of this process while it runs do.
func cpuTime(b *testing.B, do func()) time.Duration {
	b.Helper()
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	do()
	return used() - before
}
