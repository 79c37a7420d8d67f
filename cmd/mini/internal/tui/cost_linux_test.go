package tui

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/minibench/mini/cmd/mini/internal/ptytest"
	"github.com/minibench/mini/runner"
)

// BenchmarkView measures what a view of 64 workers costs beyond the events
// themselves, 3000 a second, in percent of one core. What reads the terminal's
// other side counts, too.
func BenchmarkView(b *testing.B) {
	const length = 10 * time.Second
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	for b.Loop() {
		p := ptytest.Open(b, 160, 50)
		os.Stdin = p.Line                                    // where keys come from
		go func() { _, _ = io.Copy(io.Discard, p.Master) }() // ends with the terminal
		without := processorTime(b, func() { tellSteps(func(runner.Event) {}, length) })
		with := processorTime(b, func() {
			live := Start(Config{Terminal: p.Line, Title: Title{Dataset: "verified", Model: "m", Folder: "runs/x"}, Desk: &clerk{}})
			tellSteps(live.Event, length)
			if err := live.Close(); err != nil {
				b.Error(err)
			}
		})
		b.ReportMetric(100*(with-without).Seconds()/length.Seconds(), "%core")
		b.ReportMetric(0, "ns/op")
	}
}

// tellSteps tells the steps of 64 workers at an even rate, three events each.
func tellSteps(tell func(runner.Event), length time.Duration) {
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
			e := runner.Event{Type: runner.Doing, Time: now, Instance: fmt.Sprintf("sympy__sympy-%d", told/3%workers), Attempt: 1, Step: step, Cost: float64(step) / 100}
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

// processorTime is what this process takes to do something.
func processorTime(b *testing.B, do func()) time.Duration {
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
