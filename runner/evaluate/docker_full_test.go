//go:build full

package evaluate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// TestTests evaluates patches whose tests hang, kill, or take all of a resource.
func TestTests(t *testing.T) {
	engine := demoEngine(t)
	in := row(t)
	for _, c := range []patchCase{
		{
			name: "hangs", row: withTest(in, "echo before; sleep 600"), patch: in.Patch, timeout: 20 * time.Second, class: verdicts.TimedOut, files: ran, with: "git apply --verbose",
			check: func(t *testing.T, b *evaluation, _ verdicts.Record) {
				if log := b.file(tree + "test_output.txt"); !strings.Contains(log, "\nbefore\n") || !strings.HasSuffix(log, "\n\nTimeout error: 20 seconds exceeded.") {
					t.Errorf("the log is\n%s", log)
				}
			},
		},
		{
			// PID 1 ignores the signal; a script may kill itself.
			name: "kills all it can reach", row: withTest(in, "kill -9 1; kill -TERM 1; echo still here; kill -9 -1; kill -9 $$"), patch: in.Patch,
			class: verdicts.Unresolved, files: graded, with: "git apply --verbose",
			check: func(t *testing.T, b *evaluation, _ verdicts.Record) {
				if log := b.file(tree + "test_output.txt"); !strings.Contains(log, "\nstill here\n") {
					t.Errorf("the log is\n%s", log)
				}
			},
		},
		{
			name: "fills a file system of its own", row: withTest(in, "head -c 64M /dev/zero > /scratch/full; head -c 1M /dev/zero > /scratch/more; df /scratch; (exit 1)"),
			patch: in.Patch, class: verdicts.Unresolved, files: graded, with: "git apply --verbose",
			change: func(c *docker.Config) { c.Tmpfs = map[string]int64{"/scratch": 8 << 20} },
			check: func(t *testing.T, b *evaluation, _ verdicts.Record) {
				if log := b.file(tree + "test_output.txt"); !strings.Contains(log, "No space left on device") || !strings.Contains(log, "100%") {
					t.Errorf("the log is\n%s", log)
				}
			},
		},
		{
			name: "takes all memory", row: withTest(in, "exec python3 -c 'x = bytearray(600 << 20)'"), patch: in.Patch,
			class: verdicts.Infrastructure, files: graded, with: "git apply --verbose",
			change: func(c *docker.Config) { c.MemoryBytes = 256 << 20 },
			check: func(t *testing.T, _ *evaluation, r verdicts.Record) {
				if len(r.Runs) != 2 || !strings.Contains(r.Reason, "memory") {
					t.Errorf("%d runs, %s", len(r.Runs), r.Reason)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, engine) })
	}
}

// TestContainerKilled checks that a run whose sandbox dies has no verdict and is
// repeated.
func TestContainerKilled(t *testing.T) {
	engine := demoEngine(t)
	api := dockertest.Client(t)
	in := withTest(row(t), "echo ready; sleep 600")
	b := newEvaluation(t, nil)
	var killers sync.WaitGroup
	deaths := 0
	kill := func(c *docker.Container) {
		deaths++
		killers.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				log, _ := os.ReadFile(filepath.Join(b.dir, tree, "test_output.txt"))
				if strings.Contains(string(log), "\nready\n") {
					break
				}
				if t.Context().Err() != nil {
					return
				}
			}
			if err := api.ContainerKill(context.WithoutCancel(t.Context()), c.Name(), "KILL"); err != nil {
				t.Error(err)
			}
		})
	}
	b.config.Sandboxes, b.config.Retries.MaxTries = containers{engine: engine, started: kill}, 2
	task := evaluate.NewTask(in, "m", []byte(in.Patch))
	s := b.run(t.Context(), task)
	killers.Wait()
	if s.Count(verdicts.Infrastructure) != 1 || deaths != 2 || s.IsComplete() {
		t.Fatalf("%v after %d containers", s.ByClass, deaths)
	}
	if a := s.Records[0].Runs[1]; a.Status != env.ContainerDied || b.official("m", in.ID) != ran {
		t.Errorf("status %s: %s; files %s", a.Status, a.Reason, b.official("m", in.ID))
	}
	b.checkOfficial(s, task)
}

// TestLongLog checks that neither the helper nor mini stores a log in memory during
// the run. mini needs it in memory only for grading.
func TestLongLog(t *testing.T) {
	const size, room = 200 << 20, 48 << 20
	sandbox, err := containers{engine: demoEngine(t)}.Start(t.Context(), row(t))
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Close(context.WithoutCancel(t.Context()))
	var most, seen uint64
	start := time.Now()
	res, err := sandbox.Execute(t.Context(), env.Command{
		Script: fmt.Sprintf("yes 'a line of a log that is long' | head -c %d", size), Timeout: 5 * time.Minute, OutputLimit: env.SinkLimit,
		Sink: writer(func(p []byte) (int, error) {
			if seen += uint64(len(p)); seen%(16<<20) < uint64(len(p)) {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
			return len(p), nil
		}),
	})
	if err != nil || res.Bytes != size || seen != size || res.Truncated {
		t.Fatalf("%d of %d bytes, %d seen, %v", res.Bytes, size, seen, err)
	}
	took := time.Since(start)
	// The peak memory of the helper, in kB.
	res, err = sandbox.Execute(t.Context(), env.Command{Script: "awk '/VmHWM/ { print $2 }' /proc/1/status", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	helper, err := strconv.Atoi(strings.TrimSpace(string(res.Output)))
	if err != nil || most > room || helper > room>>10 {
		t.Errorf("mini has %d bytes in use, the helper had %d kB, %v", most, helper, err)
	}
	t.Logf("%d MB in %s; mini's heap %d MB, the helper's peak %d MB", size>>20, took, most>>20, helper>>10)
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
