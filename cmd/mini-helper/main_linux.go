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
	"sync"
	"syscall"

	"github.com/minibench/mini/env/helper/server"
)

// spare is how many threads are made ready at the start: later, the commands
// may have used up the sandbox's allowance of processes and threads.
const spare = 8

func main() {
	// Before anything else: from here on no command can open this process's
	// pipes, memory or environment, nor trace it.
	const prSetDumpable = 4
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0); errno != 0 {
		os.Exit(1)
	}
	ignoreSignals()
	prepareThreads()
	debug.SetGCPercent(50) // memory is the sandbox's, and little of it is garbage
	hash, err := ownHash()
	if err != nil {
		os.Exit(1)
	}
	err = server.Serve(context.Background(), server.Config{
		In:      os.Stdin,
		Out:     os.Stdout,
		Hash:    hash,
		Environ: os.Environ(),
	})
	if err != nil {
		os.Exit(1)
	}
}

// ignoreSignals catches and drops whatever commands may send. The runtime would
// end the program on several signals that nobody asked to be told of.
func ignoreSignals() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals)
	go func() { // lives as long as the program
		for range signals {
		}
	}()
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
