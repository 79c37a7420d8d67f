package memory_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent/memory"
)

// A test that needs other processes starts its own program again: writer says
// what it does then.
const (
	writerFile  = "MINI_TEST_NOTES"
	writerName  = "MINI_TEST_WRITER"
	writerCount = "MINI_TEST_COUNT"
	writerLimit = "MINI_TEST_FILE_LIMIT"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerFile); path != "" {
		os.Exit(write(path))
	}
	goleak.VerifyTestMain(m)
}

// write adds notes, and says of each when it is kept.
func write(path string) int {
	if limit, err := strconv.ParseUint(os.Getenv(writerLimit), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			fmt.Println("limit:", err)
			return 3
		}
	}
	store, n := memory.NewStore(path), 0
	if s := os.Getenv(writerCount); s != "" {
		n, _ = strconv.Atoi(s)
	}
	for i := range n {
		a, err := store.Add(context.Background(), "made", fmt.Sprintf("%s %d", os.Getenv(writerName), i))
		if err != nil {
			fmt.Println("error:", err)
			return 1
		}
		fmt.Println(a.ID)
	}
	return 0
}
