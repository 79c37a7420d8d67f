package worktree_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestScrubCost reports the cost of a scrub in a repository made by
// scripts/big-repository.sh, with packs to rewrite and with nothing to remove.
// Memory is that of the largest process.
func TestScrubCost(t *testing.T) {
	big := os.Getenv("MINI_BIG_REPOSITORY")
	if big == "" {
		t.Skip("takes minutes; MINI_BIG_REPOSITORY=FOLDER of scripts/big-repository.sh runs it")
	}
	dir := filepath.Join(t.TempDir(), "big")
	sh(t, ".", "cp -a "+big+" "+dir)
	before := sh(t, dir, "git status")
	for _, method := range []string{"repacked", "none"} {
		_, start := childUsage(t)
		report, err := scrub(t, dir)
		memory, cpu := childUsage(t)
		cpu -= start
		if err != nil || !report.IsClean() || report.Method != method {
			t.Fatalf("%v, %+v", err, report)
		}
		t.Logf("%s: %.1f s, of a processor %.1f s, %d objects removed of %d; at most %d MB in one process", method, report.Duration.Seconds(), cpu,
			report.ObjectsRemoved, report.Objects+report.ObjectsRemoved, memory)
	}
	if after := sh(t, dir, "git status"); after != before {
		t.Error("git status changed")
	}
	tree := open(t, dir)
	sh(t, dir, "echo x >> pkg1/mod1.py")
	start := time.Now()
	if diff, err := tree.Diff(t.Context()); err != nil || !diff.Exact || len(diff.Patch) == 0 {
		t.Errorf("%v, %+v", err, diff)
	}
	t.Logf("diff: %.1f s", time.Since(start).Seconds())
}

// childUsage returns the peak memory of the largest child process, in MB, and
// the CPU time of all, in seconds.
func childUsage(t *testing.T) (memory int64, cpu float64) {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &use); err != nil {
		t.Fatal(err)
	}
	return use.Maxrss >> 10, float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}
