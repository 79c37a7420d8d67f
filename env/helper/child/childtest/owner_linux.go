package childtest

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child"
)

// ownerVariable makes the test binary run as an owner process. Its value is a word to
// put on the command lines of its processes, and the path of the helper.
const ownerVariable = "MINI_TEST_OWNER"

// stubborn are commands that try to outlive their owner. The processes that they leave
// running have $W in their command line.
var stubborn = []string{
	`exec -a $W sleep 300`,
	`bash -c 'exec -a $W sleep 300' & sleep 300`,
	`setsid bash -c 'exec -a $W sleep 300' & sleep 0.02`,
	`nohup bash -c 'exec -a $W sleep 300' >/dev/null 2>&1 & sleep 0.01`,
	`bash -c 'trap "" TERM INT HUP; : $W; while :; do sleep 0.1; done' & sleep 0.02`,
	`env -i W=$W setsid bash -c 'exec -a $W sleep 300' & sleep 0.01`,
	`(env -i W=$W setsid bash -c '(exec -a $W sleep 300) & exit' >/dev/null 2>&1 &); sleep 0.01`,
	`(env -i W=$W setsid bash -c 'setsid bash -c "(exec -a $W sleep 300) & exit" & exit' </dev/null >/dev/null 2>&1 &); sleep 300`,
	`for i in 1 2 3 4 5; do (setsid bash -c 'exec -a $W sleep 300' &); done; yes`,
}

// RunOwner must be called at the beginning of TestMain. In a process started by RunOrphanTest
// it does not return: it runs stubborn commands until it is killed.
func RunOwner(open func(ctx context.Context, p *child.Program, dir string) (env.Environment, error)) {
	word, file, ok := strings.Cut(os.Getenv(ownerVariable), "|")
	if !ok {
		return
	}
	if err := os.Unsetenv(ownerVariable); err != nil {
		panic(err)
	}
	binary, err := os.ReadFile(file) //nolint:gosec // named by the test
	if err != nil {
		panic(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	program, err := child.Load(binary, "") // any hash
	if err != nil {
		panic(err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				runStubborn(open, program, dir, word)
			}
		})
	}
	wg.Wait()
}

// runStubborn opens an environment, runs some stubborn commands and closes it.
func runStubborn(open func(context.Context, *child.Program, string) (env.Environment, error), program *child.Program, dir, word string) {
	ctx := context.Background()
	sandbox, err := open(ctx, program, dir)
	if err != nil {
		panic(err)
	}
	for range 15 {
		timeout := time.Duration(20+mrand.IntN(500)) * time.Millisecond //nolint:gosec // no security relevance
		if _, err := sandbox.Execute(ctx, env.Command{
			Script: stubborn[mrand.IntN(len(stubborn))], Env: map[string]string{"W": word}, Timeout: timeout, //nolint:gosec // likewise
		}); err != nil {
			panic(err)
		}
		fmt.Println("ran")
	}
	if err := sandbox.Close(ctx); err != nil {
		panic(err)
	}
}

// RunOrphanTest starts owner processes and kills them with SIGKILL at random times: the
// process, or in every third round its whole process group. All their descendants must
// exit within a minute.
func RunOrphanTest(t *testing.T) {
	t.Helper()
	const rounds, timeout = 4, time.Minute
	file := File(t)
	busyRounds := 0
	for round := range rounds {
		word := "mini-orphan-" + rand.Text()
		if killOwner(t, word, file, round, timeout) > 0 {
			busyRounds++
		}
	}
	if busyRounds < rounds/3 {
		t.Errorf("%d of %d rounds had no process to orphan, so the test is not conclusive", rounds-busyRounds, rounds)
	}
}

// killOwner runs one round. It returns the number of processes at the kill.
func killOwner(t *testing.T, word, file string, round int, timeout time.Duration) (found int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this test binary
	cmd.Env = append(os.Environ(), ownerVariable+"="+word+"|"+file)
	cmd.Stderr, cmd.Dir = os.Stderr, t.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if round%2 == 0 { // while commands run; in odd rounds possibly before
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Errorf("the owner exited by itself: %v", err)
		}
	}
	<-time.After(time.Duration(mrand.IntN(400)) * time.Millisecond) //nolint:gosec // the random moment
	// A busy machine starts few processes before their timeouts.
	for end := time.Now().Add(timeout); ; time.Sleep(5 * time.Millisecond) {
		found = len(Running(t, word))
		if found > 0 || round%2 != 0 || time.Now().After(end) {
			break
		}
	}
	target := cmd.Process.Pid
	if round%3 == 0 {
		target = -target
	}
	if err := syscall.Kill(target, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	RequireExit(t, word, timeout)
	return found
}
