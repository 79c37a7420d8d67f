package live

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/minibench/mini/internal/ptytest"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
)

// runChild runs one of the test programs, which show the view on the terminal of this process.
func runChild(program string) error {
	// In case a test does not stop this process.
	time.AfterFunc(3*ptytest.Deadline, func() { os.Exit(3) })
	switch program {
	case "panic":
		return show(func() { panic("a mistake in the view") })
	case "gone": // the process survives SIGHUP
		signal.Ignore(unix.SIGHUP)
		return show(func() {})
	}
	return fmt.Errorf("no test program %q", program)
}

// show shows a run until the view fails or the process dies. It prints a line after the terminal
// has been restored.
func show(interrupt func()) error {
	state := batch.New()
	state.Update(runner.Event{Type: runner.RunStarted, Time: time.Now(), Total: 5, Workers: 2})
	view := Start(Config{Terminal: os.Stderr, State: state, Controller: &recordingController{}, Interrupt: interrupt})
	<-view.Done()
	err := view.Close()
	fmt.Println("given back:", err)
	if path := os.Getenv("MINI_TUI_RESULT"); path != "" { // the terminal may be lost
		return os.WriteFile(path, []byte(fmt.Sprint(err)), 0o600)
	}
	return nil
}
