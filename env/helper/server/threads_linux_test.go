package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env/helper"
)

// TestBlockedSignals: only the helper's first thread blocks signals, because commands
// inherit what the thread blocks that starts them.
func TestBlockedSignals(t *testing.T) {
	const shield = "fffffffd7ffbfeff" // all but 32 and 34, and SIGKILL and SIGSTOP, which cannot be blocked
	for range 20 {
		b := launch(t, binary)
		b.setup(helper.Setup{Dir: t.TempDir()})
		pid := fmt.Sprint(b.cmd.Process.Pid)
		for deadline := time.Now().Add(time.Minute); ; {
			blocked := blockedSignals(t, pid)
			if tid, ok := holder(blocked, shield); ok {
				if tid != pid {
					t.Fatalf("thread %s of process %s blocks signals: %v", tid, pid, blocked)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no thread blocks signals: %v", blocked)
			}
		}
	}
}

// holder returns the thread with a mask.
func holder(blocked map[string]string, mask string) (tid string, ok bool) {
	for tid, m := range blocked {
		if m == mask {
			return tid, true
		}
	}
	return "", false
}

// blockedSignals returns the mask of each thread of a process in hex.
func blockedSignals(t *testing.T, pid string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("/proc/" + pid + "/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	masks := map[string]string{}
	for _, f := range files {
		status, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(status), "\nSigBlk:")
		mask, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
		masks[filepath.Base(filepath.Dir(f))] = mask
	}
	return masks
}
