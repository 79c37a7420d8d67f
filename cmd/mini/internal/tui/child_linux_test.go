package tui

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/minibench/mini/cmd/mini/internal/ptytest"
	"github.com/minibench/mini/runner"
)

// child plays mini on the terminal that this process was given. The first line
// it prints outside the view says that the screen was given back.
func child(part string) error {
	// However a test ends, this does too.
	time.AfterFunc(3*ptytest.Deadline, func() { os.Exit(3) })
	switch part {
	case "panic":
		return show(func() { panic("a mistake in the view") })
	case "gone": // mini is told of the hang-up and goes on
		signal.Ignore(unix.SIGHUP)
		return show(func() {})
	}
	done := make(chan struct{})
	live := Start(Config{Terminal: os.Stderr, Desk: &clerk{}, Interrupt: func() { close(done) }})
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
	live := Start(Config{Terminal: os.Stderr, Desk: &clerk{}, Interrupt: interrupt})
	live.Event(runner.Event{Type: runner.RunStarted, Time: time.Now(), Total: 5, Workers: 2})
	<-live.Done()
	err := live.Close()
	fmt.Println("given back:", err)
	if path := os.Getenv("MINI_TUI_RESULT"); path != "" { // there may be no terminal any more
		return os.WriteFile(path, []byte(fmt.Sprint(err)), 0o600)
	}
	return nil
}
