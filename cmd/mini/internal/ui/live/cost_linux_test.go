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
	"github.com/minibench/mini/runner/batch"
)

// BenchmarkView measures the CPU usage of a view of 64 workers at 3000 events per second, in
// percent of one core. The result includes the goroutine that reads the terminal.
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
			title := Title{Dataset: "verified", Model: "m", Folder: "runs/x"}
			state := batch.New()
			view := Start(Config{Terminal: p.TTY, State: state, Title: title, Controller: &recordingController{}})
			sendSteps(func(e runner.Event) {
				state.Update(e)
				view.HandleEvent(e)
			}, length)
			if err := view.Close(); err != nil {
				b.Error(err)
			}
		})
		b.ReportMetric(100*(with-without).Seconds()/length.Seconds(), "%core")
		b.ReportMetric(0, "ns/op")
	}
}

// sendSteps calls handle with the events of 64 workers at a constant rate, three events per
// step.
func sendSteps(handle func(runner.Event), length time.Duration) {
	const workers, perSecond = 64, 3000
	handle(runner.Event{Type: runner.RunStarted, Time: time.Now(), Total: workers, Workers: workers})
	for i := range workers {
		handle(runner.Event{Type: runner.AttemptStarted, Time: time.Now(), Instance: instanceID(i), Attempt: 1})
	}
	start, sent := time.Now(), 0
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for now := range tick.C {
		if now.Sub(start) >= length {
			return
		}
		for due := int(now.Sub(start).Seconds() * perSecond); sent < due; sent++ {
			step := sent / (3 * workers)
			e := runner.Event{Type: runner.PhaseChanged, Time: now, Instance: instanceID(sent / 3 % workers), Attempt: 1, Step: step, Cost: float64(step) / 100}
			switch e.Command = fmt.Sprintf("python -m pytest -x -q tests/test_%d.py 2>&1 | tail -30", sent/3); sent % 3 {
			case 0:
				e.Phase, e.Command = runner.PhaseThinking, ""
			case 1:
				e.Phase = runner.PhaseRunning
			case 2:
				e.Type = runner.CommandFinished
			}
			handle(e)
		}
	}
}

func instanceID(worker int) string { return fmt.Sprintf("sympy__sympy-%d", worker) }

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
