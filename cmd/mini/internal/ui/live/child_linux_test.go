package live

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/minibench/mini/internal/ptytest"
	"github.com/minibench/mini/runner"
)

// child runs mini's view on the terminal of this process. It prints a line after the terminal
// has been restored.
func runChild(part string) error {
	// In case a test does not stop it.
	time.AfterFunc(3*ptytest.Deadline, func() { os.Exit(3) })
	switch part {
	case "panic":
		return show(func() { panic("a mistake in the view") })
	case "gone": // the process survives SIGHUP
		signal.Ignore(unix.SIGHUP)
		return show(func() {})
	}
	return fmt.Errorf("no part %q", part)
}

// show shows a run until the view fails or the process dies.
func show(interrupt func()) error {
	live := Start(Config{Terminal: os.Stderr, Controller: &recordingController{}, Interrupt: interrupt})
	live.HandleEvent(runner.Event{Type: runner.RunStarted, Time: time.Now(), Total: 5, Workers: 2})
	<-live.Done()
	err := live.Close()
	fmt.Println("given back:", err)
	if path := os.Getenv("MINI_TUI_RESULT"); path != "" { // the terminal may be lost
		return os.WriteFile(path, []byte(fmt.Sprint(err)), 0o600)
	}
	return nil
}
