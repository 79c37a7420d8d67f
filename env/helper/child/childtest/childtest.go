// Package childtest gives tests a helper to start, and counts what is left of
// what a test has started.
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

// FileVariable names the helper's file to tests that run where it cannot be
// built.
const FileVariable = "MINI_TEST_HELPER"

// File is a helper built from the present source.
func File(t testing.TB) string {
	t.Helper()
	if file := os.Getenv(FileVariable); file != "" {
		return file
	}
	return filepath.Join(dockertest.HelperDir(t), binaries.Name(runtime.GOARCH))
}

// Program is the same, ready to be started.
func Program(t testing.TB) *child.Program {
	t.Helper()
	binary, hash := read(t)
	return load(t, binary, hash)
}

// Mislabelled is a helper under the hash of another.
func Mislabelled(t testing.TB) *child.Program {
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

// Living lists the processes with a word in their command line, this one
// excluded. Dead ones have no command line.
func Living(t testing.TB, word string) map[int]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, file := range files {
		line, err := os.ReadFile(file) //nolint:gosec // a place in /proc
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

// Gone fails the test unless all processes with a word in their command line end
// within a time.
func Gone(t testing.TB, word string, within time.Duration) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left := Living(t, word)
		switch {
		case len(left) == 0:
			return
		case time.Now().After(deadline):
			t.Errorf("%d processes live on after %v: %.2000s", len(left), within, fmt.Sprint(left))
			return
		}
		<-tick.C // a look at every process costs others their time
	}
}
