package tui

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/cmd/mini/internal/screen"
)

var update = flag.Bool("update", false, "rewrite golden files")

// childEnv makes this program play a part instead of running tests: it is its
// own guard, and its own mini on a terminal.
const childEnv = "MINI_TUI_CHILD"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == screen.GuardCommand {
		screen.Guard()
		return
	}
	if part := os.Getenv(childEnv); part != "" {
		if err := child(part); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
