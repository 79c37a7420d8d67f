package tui

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/minibench/mini/cmd/mini/internal/ptytest"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// child plays mini on the terminal that this process was given. The first line
// it prints outside the view says that the screen was given back.
func child(part string) error {
	// However a test ends, this does too.
	time.AfterFunc(3*ptytest.Deadline, func() { os.Exit(3) })
	switch part {
	case "load":
		return load()
	case "panic":
		return show(func() { panic("a mistake in the view") })
	case "gone": // mini is told of the hang-up and goes on
		signal.Ignore(unix.SIGHUP)
		return show(func() {})
	}
	done := make(chan struct{})
	live := Start(Config{Terminal: os.Stderr, Interrupt: func() { close(done) }})
	live.Event(runner.Event{Type: runner.RunStarted, Time: time.Now(), Total: 5, Workers: 2})
	<-done
	if err := live.Close(); err != nil {
		return err
	}
	fmt.Println("given back")
	return goleak.Find()
}

// show shows a run until the view fails or the process dies.
func show(interrupt func()) error {
	live := Start(Config{Terminal: os.Stderr, Interrupt: interrupt})
	live.Event(runner.Event{Type: runner.RunStarted, Time: time.Now(), Total: 5, Workers: 2})
	<-live.Done()
	err := live.Close()
	fmt.Println("given back:", err)
	if path := os.Getenv("MINI_TUI_RESULT"); path != "" { // there may be no terminal any more
		return os.WriteFile(path, []byte(fmt.Sprint(err)), 0o600)
	}
	return nil
}

// load tells a view of 64 workers of so many events a second, for so long, and
// prints what processor time that took. Without a view it tells nobody.
func load() error {
	seconds, err1 := strconv.ParseFloat(os.Getenv("MINI_TUI_SECONDS"), 64)
	perSecond, err2 := strconv.Atoi(os.Getenv("MINI_TUI_EVENTS"))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	debug.SetGCPercent(30) // as mini does
	tell := func(runner.Event) {}
	if os.Getenv("MINI_TUI_VIEW") != "" {
		live := Start(Config{Terminal: os.Stderr, Title: Title{Dataset: "verified", Model: "m", Folder: "runs/x"}})
		defer live.Close()
		tell = live.Event
	}
	busy(tell, time.Duration(seconds*float64(time.Second)), perSecond)
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return err
	}
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	return os.WriteFile(os.Getenv("MINI_TUI_RESULT"), []byte(strconv.FormatFloat(cpu.Seconds(), 'f', 4, 64)), 0o600)
}

// busy is what 64 workers at full speed tell, at an even rate: three events a
// step, and an end and a beginning after twenty steps.
func busy(tell func(runner.Event), length time.Duration, perSecond int) {
	const workers = 64
	type attempt struct{ number, step, part int }
	at := [workers]attempt{}
	id := func(w int) string { return fmt.Sprintf("scikit-learn__scikit-learn-%d", 10000+w+workers*at[w].number) }
	tell(runner.Event{Type: runner.RunStarted, Time: time.Now(), Total: 1 << 20, Workers: workers})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	begin, told := time.Now(), 0
	for now := range tick.C {
		if now.Sub(begin) >= length {
			return
		}
		for due := int(now.Sub(begin).Seconds() * float64(perSecond)); told < due; told++ {
			w := told % workers
			a := &at[w]
			e := runner.Event{Time: now, Instance: id(w), Attempt: 1, Step: a.step, Cost: float64(a.step) / 100}
			command := "python -m pytest -x -q tests/test_" + strconv.Itoa(told) + ".py 2>&1 | tail -30"
			switch a.part {
			case 0:
				e.Type, e.Phase = runner.Doing, runner.Thinking
			case 1:
				e.Type, e.Phase, e.Command = runner.Doing, runner.Running, command
			case 2:
				e.Type, e.Command = runner.Step, command
				a.step++
			}
			tell(e)
			if a.part = (a.part + 1) % 3; a.step < 20 {
				continue
			}
			tell(runner.Event{Type: runner.AttemptFinished, Time: now, Instance: id(w), Outcome: &trajectories.Outcome{
				Class: trajectories.Submitted, ExitStatus: "Submitted", Steps: 20, Start: begin, End: now,
			}})
			tell(runner.Event{Type: runner.Doing, Phase: runner.Left, Time: now, Instance: id(w)})
			*a = attempt{number: a.number + 1}
			tell(runner.Event{Type: runner.AttemptStarted, Time: now, Instance: id(w), Attempt: 1})
		}
	}
}
