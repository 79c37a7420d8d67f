package screen

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	tty "github.com/minibench/mini/cmd/mini/internal/screen"
)

var update = flag.Bool("update", false, "rewrite golden files")

// childEnv makes this program play a part on a terminal instead of running tests;
// it is its own guard, too.
const childEnv = "MINI_SCREEN_CHILD"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == tty.GuardCommand {
		tty.Guard()
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
