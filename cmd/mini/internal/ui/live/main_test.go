package live

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite golden files")

// childEnv makes this program run mini's view on a terminal instead of the tests.
const childEnv = "MINI_TUI_CHILD"

func TestMain(m *testing.M) {
	if program := os.Getenv(childEnv); program != "" {
		if err := runChild(program); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
