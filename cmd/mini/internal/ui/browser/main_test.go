package browser

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childEnv names a folder that this program browses instead of running the tests.
const childEnv = "MINI_INSPECT_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		time.AfterFunc(3*deadline, func() { os.Exit(3) }) // in case a test does not stop it
		err := Run(context.Background(), Options{Path: path, Terminal: os.Stdout})
		fmt.Println("given back:", err, goleak.Find())
		return
	}
	goleak.VerifyTestMain(m)
}

// deadline bounds every wait of a test.
const deadline = 30 * time.Second
