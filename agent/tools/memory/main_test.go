package memory_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent/tools/memory"
)

// Tests that need other processes start the test binary again. If the
// environment variable writerFile is set, the binary runs addNotes.
const (
	writerFile  = "MINI_TEST_NOTES"
	writerName  = "MINI_TEST_WRITER"
	writerCount = "MINI_TEST_COUNT"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerFile); path != "" {
		os.Exit(addNotes(path))
	}
	goleak.VerifyTestMain(m)
}

// addNotes adds notes and prints the ID of each stored note. It returns the
// exit code.
func addNotes(path string) int {
	store, n := memory.NewStore(path), 0
	if s := os.Getenv(writerCount); s != "" {
		n, _ = strconv.Atoi(s)
	}
	for i := range n {
		a, err := store.Add(context.Background(), "made", fmt.Sprintf("%s %d", os.Getenv(writerName), i))
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			return 1
		}
		fmt.Println(a.ID)
	}
	return 0
}
