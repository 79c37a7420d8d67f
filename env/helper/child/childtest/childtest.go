// Package childtest provides tests with a helper binary, and finds processes that a
// test has left running.
package childtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/env/helper/child"
)

// File returns the path of a helper: the file named by dockertest.HelperVariable, or
// else one built from the current source.
func File(t testing.TB) string {
	t.Helper()
	if file := os.Getenv(dockertest.HelperVariable); file != "" {
		return file
	}
	return filepath.Join(dockertest.HelperDir(t), binaries.Name(runtime.GOARCH))
}

// Program returns the helper of File as a Program.
func Program(t testing.TB) *child.Program {
	t.Helper()
	binary, hash := read(t)
	return load(t, binary, hash)
}

// ProgramWithWrongHash is like Program, but with a hash that is not the binary's.
func ProgramWithWrongHash(t testing.TB) *child.Program {
	t.Helper()
	binary, _ := read(t)
	return load(t, binary, strings.Repeat("0", 64))
}

func read(t testing.TB) (binary []byte, hash string) {
	t.Helper()
	binary, err := os.ReadFile(File(t))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(binary)
	return binary, hex.EncodeToString(sum[:])
}

func load(t testing.TB, binary []byte, hash string) *child.Program {
	t.Helper()
	p, err := child.Load(binary, hash)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Running returns the command lines, by PID, of all other processes whose command line
// contains a word. Zombies have no command line.
func Running(t testing.TB, word string) map[int]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, file := range files {
		line, err := os.ReadFile(file) //nolint:gosec // a path in /proc
		if err != nil || !bytes.Contains(line, []byte(word)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && pid != os.Getpid() {
			found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
	return found
}

// RequireExit fails the test unless all processes whose command line contains a word
// exit within a timeout.
func RequireExit(t testing.TB, word string, timeout time.Duration) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left := Running(t, word)
		switch {
		case len(left) == 0:
			return
		case time.Now().After(deadline):
			t.Errorf("%d processes are still running after %v: %.2000s", len(left), timeout, fmt.Sprint(left))
			return
		}
		<-tick.C // scanning all processes is expensive
	}
}
