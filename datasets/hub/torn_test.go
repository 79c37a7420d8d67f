package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/datasets/hub/hubtest"
)

// rounds is how often each test interrupts a download.
const rounds = 50

// child is the main function of the child process. It returns the exit code.
func child(mode string) int {
	if mode == "disk" {
		return diskChild()
	}
	h, err := hub.New(hub.Config{Endpoint: os.Getenv("HUB_TEST_URL"), Dir: os.Getenv("HUB_TEST_DIR")})
	if err == nil {
		_, err = h.Fetch(context.Background(), hub.Ref{Repo: repo})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// startChild returns a command that runs child.
func startChild(t *testing.T, mode string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), append(env, "HUB_TEST_CHILD="+mode, "GORACE=atexit_sleep_ms=0")...)
	return cmd
}

// TestKilled kills fetches at a random byte, once or twice, and then completes one. Half
// of the kills happen while the child waits for the next byte, the others while it
// continues to download.
func TestKilled(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := server(t)
	total := int64(500_001 + len(files()["README.md"]))
	resumed, killed := 0, 0
	for round := range rounds {
		dir := t.TempDir()
		for range 1 + random.IntN(2) {
			if kill(t, s, dir, random.Int64N(total)+1, random.IntN(2) == 0) {
				killed++
			}
		}
		s.Throttle(0, nil)
		s.ResetRequests()
		e, err := open(t, hub.Config{Endpoint: s.URL, Dir: dir}).Open(t.Context(), hub.Ref{Repo: repo})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := compare(e, files()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if found := leftovers(t, dir); len(found) > 0 {
			t.Fatalf("round %d left %v", round, found)
		}
		for _, r := range s.Downloads(".parquet") {
			if r.Range != "" {
				resumed++
			}
		}
	}
	t.Logf("%d kills, %d files resumed", killed, resumed)
	if killed < rounds/2 || resumed == 0 {
		t.Errorf("%d kills, %d resumed: want a kill in every second round, and resumed downloads", killed, resumed)
	}
}

// kill starts a fetch and kills it when the server has sent so many bytes.
func kill(t *testing.T, s *hubtest.Server, dir string, at int64, hold bool) bool {
	t.Helper()
	reached, dead := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.Throttle(1+int(at%7000), func(sent int64) {
		if sent < at {
			return
		}
		once.Do(func() { close(reached) })
		if hold {
			<-dead
		}
	})
	cmd := startChild(t, "fetch", "HUB_TEST_URL="+s.URL, "HUB_TEST_DIR="+dir)
	must(t, cmd.Start())
	var err error
	done := make(chan struct{})
	go func() {
		err = cmd.Wait()
		close(done)
	}()
	defer close(dead)
	select {
	case <-reached:
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		<-done
		return err != nil
	case <-done: // the rest of the download was shorter than at
		return false
	}
}
