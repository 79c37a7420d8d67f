package inspect

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childEnv makes this program show a folder instead of running tests.
const childEnv = "MINI_INSPECT_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		time.AfterFunc(3*deadline, func() { os.Exit(3) }) // however a test ends, this does too
		err := Run(context.Background(), Config{Path: path, Terminal: os.Stdout})
		fmt.Println("given back:", err, goleak.Find())
		return
	}
	goleak.VerifyTestMain(m)
}

// deadline bounds everything that a test waits for.
const deadline = 30 * time.Second
