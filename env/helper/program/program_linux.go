package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/minitool"
	"github.com/minibench/mini/env/helper/pod"
	"github.com/minibench/mini/env/helper/repository"
	"github.com/minibench/mini/env/helper/server"
)

// spareThreads is the number of threads that the helper starts in advance, because
// commands may later use up the sandbox's limit of processes and threads.
const spareThreads = 8

// In large executables other packages start goroutines, and main would begin on another
// thread than the first, which Main needs.
func init() {
	if IsStarted() {
		runtime.LockOSThread()
	}
}

// IsStarted reports whether this process was started as one of the programs.
func IsStarted() bool {
	return minitool.IsToolName(os.Args) || os.Args[0] == env.RepositoryProgram ||
		len(os.Args) > 1 && os.Args[1] == helper.ProgramArg
}

// Main runs the program and exits. It needs the first thread: an init function must have
// called runtime.LockOSThread, as this package's does if IsStarted.
func Main() {
	runtime.LockOSThread()
	if minitool.IsToolName(os.Args) {
		os.Exit(minitool.Main())
	}
	if os.Args[0] == env.RepositoryProgram {
		os.Exit(repository.Main())
	}
	// This must come first. After it, no command can open the pipes, the memory or the
	// environment of this process, or trace it.
	const prSetDumpable = 4
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0); errno != 0 {
		os.Exit(1)
	}
	args := os.Args[1:]
	if len(args) > 0 && args[0] == helper.ProgramArg {
		args = args[1:]
	}
	if len(args) > 0 && args[0] != helper.NoTraceArg {
		runPodCommand(args[0], args[1:])
	}
	if slices.Contains(args, helper.NoTraceArg) {
		dropTrace()
	}
	// The helper mostly waits. With one P, work is not passed between threads, and a
	// blocking call releases the P.
	runtime.GOMAXPROCS(1)
	ignoreSignals()
	prepareThreads()
	debug.SetGCPercent(50) // the helper uses the sandbox's memory and creates little garbage
	code := make(chan int)
	go func() { code <- serve(slices.Contains(args, pod.ServeArg)) }()
	shieldFirstThread()
	os.Exit(<-code)
}

// dropTrace removes CAP_SYS_PTRACE from all later commands. With this capability, a
// command that runs as root could read the memory of the mini process that started the
// helper, although that process is not dumpable. The helper itself keeps the capability.
// dropTrace ignores errors: a user who cannot drop capabilities has none.
func dropTrace() {
	const capSysPtrace = 19
	_, _, _ = syscall.AllThreadsSyscall(syscall.SYS_PRCTL, syscall.PR_CAPBSET_DROP, capSysPtrace, 0)
}

// runPodCommand runs a subcommand of package pod, and exits. It returns if the command is
// pod.ServeArg.
func runPodCommand(command string, args []string) {
	err := fmt.Errorf("unknown command %q", command)
	switch {
	case command == pod.ServeArg:
		return
	case command == pod.RelayArg:
		err = pod.Relay()
	case command == pod.InstallArg && len(args) == 1:
		err = pod.Install(args[0])
	case command == pod.ProbeArg && len(args) > 0:
		var limit time.Duration
		if limit, err = time.ParseDuration(args[0]); err == nil {
			err = pod.Probe(os.Stdout, limit, args[1:])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mini-helper:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve serves requests until their end and returns the exit code. In a pod they arrive
// over relays, elsewhere on stdin.
func serve(inPod bool) int {
	hash, err := ownHash()
	if err != nil {
		return 1
	}
	if inPod {
		if err := pod.Serve(context.Background(), hash); err != nil {
			return 1
		}
		return 0
	}
	// A non-blocking pipe is read through the runtime's poller, without a separate
	// thread.
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

// ignoreSignals catches and ignores all signals that commands may send, because the Go
// runtime exits on several uncaught signals. It does not catch two frequent signals that
// the runtime ignores by default: SIGCHLD at the end of every command, and SIGURG from
// the runtime itself.
func ignoreSignals() {
	signals := make(chan os.Signal, 1)
	for n := syscall.Signal(1); n < 65; n++ {
		if n != syscall.SIGCHLD && n != syscall.SIGURG {
			signal.Notify(signals, n)
		}
	}
	go func() { // runs until the program exits
		for range signals {
		}
	}()
}

// shieldFirstThread prevents signals 32 and 34, for which the runtime has no handler,
// from killing PID 1. Linux ignores an unhandled signal to PID 1 unless the first thread
// blocks it at that moment; then another thread receives the signal, and the process
// dies. A thread blocks all signals while it runs a handler. The first thread must
// therefore run no handlers: it permanently blocks all signals except these two, and does
// nothing else. Commands inherit the blocked signals of the thread that starts them, so
// this thread must start none: Main keeps it to itself.
func shieldFirstThread() {
	const setMask = 2
	mask := ^uint64(1<<(32-1) | 1<<(34-1))
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&mask)), 0, unsafe.Sizeof(mask), 0, 0); errno != 0 { //nolint:gosec // the call takes the address of the mask
		os.Exit(1)
	}
}

// prepareThreads makes the runtime start spareThreads threads, which then stay idle.
func prepareThreads() {
	var started, ended sync.WaitGroup
	release := make(chan struct{})
	for range spareThreads {
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

// ownHash returns the SHA-256 of this program's file, in hex.
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
