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

// ownerVariable makes the test's binary an owner: the word for its processes,
// and the helper's file.
const ownerVariable = "MINI_TEST_OWNER"

// stubborn are commands that try to outlive their owner. Each has $W in the name
// of what it leaves running.
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

// Owner belongs at the beginning of TestMain. In a process that Orphans has
// started it does not return: it runs stubborn commands in environments until it
// is killed.
func Owner(open func(ctx context.Context, p *child.Program, dir string) (env.Environment, error)) {
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
	program, err := child.Load(binary, "") // of no other
	if err != nil {
		panic(err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				own(open, program, dir, word)
			}
		})
	}
	wg.Wait()
}

// own opens an environment, runs some commands there, and closes it.
func own(open func(context.Context, *child.Program, string) (env.Environment, error), program *child.Program, dir, word string) {
	ctx := context.Background()
	box, err := open(ctx, program, dir)
	if err != nil {
		panic(err)
	}
	for range 15 {
		timeout := time.Duration(20+mrand.IntN(150)) * time.Millisecond //nolint:gosec // nobody gains by guessing it
		if _, err := box.Execute(ctx, env.Command{
			Script: stubborn[mrand.IntN(len(stubborn))], Env: map[string]string{"W": word}, Timeout: timeout, //nolint:gosec // likewise
		}); err != nil {
			panic(err)
		}
		fmt.Println("ran")
	}
	if err := box.Close(ctx); err != nil {
		panic(err)
	}
}

// Orphans kills owners at random moments, from their first on, with kill -9: the
// process, and in every third round its whole group. Nothing of what they have
// started may be left two seconds later. MINI_TEST_LONG=1 makes it fifty rounds.
func Orphans(t *testing.T) {
	t.Helper()
	rounds, patience := 6, 20*time.Second
	if os.Getenv("MINI_TEST_LONG") == "1" {
		rounds, patience = 50, 2*time.Second
	}
	file := File(t)
	var longest time.Duration
	busy := 0
	for n := range rounds {
		word := "mini-orphan-" + rand.Text()
		found, took := orphan(t, word, file, n, patience)
		longest = max(longest, took)
		if found > 0 {
			busy++
		}
	}
	t.Logf("%d rounds, in %d of them something ran; the last process was gone %v after the kill", rounds, busy, longest)
	if busy < rounds/3 {
		t.Errorf("in %d of %d rounds there was nothing to orphan; this proves nothing", rounds-busy, rounds)
	}
}

// orphan is one round. It returns how many processes there were at the kill, and
// how long the last of them lived.
func orphan(t *testing.T, word, file string, n int, patience time.Duration) (found int, took time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this very program
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
	if n%2 == 0 { // in mid-batch; otherwise as early as it comes
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Errorf("the owner ended by itself: %v", err)
		}
	}
	<-time.After(time.Duration(mrand.IntN(400)) * time.Millisecond) //nolint:gosec // the random moment
	found = len(Living(t, word))
	target := cmd.Process.Pid
	if n%3 == 0 {
		target = -target
	}
	if err := syscall.Kill(target, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	killed := time.Now()
	_ = cmd.Wait() // it was killed
	Gone(t, word, patience)
	return found, time.Since(killed)
}
