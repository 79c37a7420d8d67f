package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/minitool"
	"github.com/minibench/mini/env/helper/server"
)

// spare is how many threads are made ready at the start: later, the commands
// may have used up the sandbox's allowance of processes and threads.
const spare = 8

func main() {
	if minitool.Called(os.Args) {
		os.Exit(minitool.Main())
	}
	// Before anything else is done: from here on no command can open this process's
	// pipes, memory or environment, nor trace it.
	const prSetDumpable = 4
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0); errno != 0 {
		os.Exit(1)
	}
	if slices.Contains(os.Args[1:], helper.NoTrace) {
		dropTrace()
	}
	// The helper mostly waits. On one processor no step is handed from thread to
	// thread, and a blocking call gives the processor up.
	runtime.GOMAXPROCS(1)
	runtime.LockOSThread() // main runs on the first thread, and stays there
	ignoreSignals()
	prepareThreads()
	debug.SetGCPercent(50) // memory is the sandbox's, and little of it is garbage
	code := make(chan int)
	go func() { code <- serve() }()
	shieldFirstThread()
	os.Exit(<-code)
}

// dropTrace takes CAP_SYS_PTRACE from every command to come. With it a command of
// root's could read the memory of the mini that started this program, although that
// is not dumpable. The helper itself keeps it. A user without the right to drop
// capabilities has none to pass on.
func dropTrace() {
	const capSysPtrace = 19
	_, _, _ = syscall.AllThreadsSyscall(syscall.SYS_PRCTL, syscall.PR_CAPBSET_DROP, capSysPtrace, 0)
}

func serve() int {
	hash, err := ownHash()
	if err != nil {
		return 1
	}
	// A pipe is then read by way of the runtime's poller, without a thread of its own.
	_ = syscall.SetNonblock(0, true)
	err = server.Serve(context.Background(), server.Config{
		In:      os.NewFile(0, "stdin"),
		Out:     os.Stdout,
		Hash:    hash,
		Environ: os.Environ(),
	})
	if err != nil {
		return 1
	}
	return 0
}

// ignoreSignals catches and drops whatever commands may send. The runtime would
// end the program on several signals that nobody asked to be told of. It does
// nothing on those for which that is the custom, and of these one comes at the end
// of every command and another one from the runtime itself.
func ignoreSignals() {
	signals := make(chan os.Signal, 1)
	for n := syscall.Signal(1); n < 65; n++ {
		if n != syscall.SIGCHLD && n != syscall.SIGURG {
			signal.Notify(signals, n)
		}
	}
	go func() { // lives as long as the program
		for range signals {
		}
	}()
}

// shieldFirstThread keeps signals 32 and 34 from ending PID 1. The runtime has
// no handler for them, and Linux drops an unhandled signal to PID 1 only if the
// first thread does not block it at that moment; otherwise another thread dies
// of it, and all with it. A thread blocks everything while it is in a handler, so
// the first one leaves every handler to the others: it blocks all signals but
// these, for good, and does nothing else.
func shieldFirstThread() {
	const setMask = 2
	mask := ^uint64(1<<(32-1) | 1<<(34-1))
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&mask)), 0, unsafe.Sizeof(mask), 0, 0); errno != 0 { //nolint:gosec // the call wants the address of the mask
		os.Exit(1)
	}
}

// prepareThreads makes the runtime start threads and keep them idle.
func prepareThreads() {
	var started, ended sync.WaitGroup
	release := make(chan struct{})
	for range spare {
		started.Add(1)
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			<-release
		})
	}
	started.Wait()
	close(release)
	ended.Wait()
}

// ownHash is the SHA-256 of this program's file, in hex.
func ownHash() (string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
