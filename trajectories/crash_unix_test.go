//go:build unix

package trajectories

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
)

// killerFile is a file that kills its process after a number of bytes, in the middle of a
// write.
type killerFile struct {
	*os.File
	remaining int // bytes to write until the kill
}

func (f *killerFile) Write(p []byte) (int, error) {
	if len(p) < f.remaining {
		f.remaining -= len(p)
		return f.File.Write(p)
	}
	_, _ = f.File.Write(p[:f.remaining])
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// killVariable is an environment variable with the value "BYTES PATH". It makes the test
// binary write a journal at PATH until it kills itself after BYTES bytes.
const killVariable = "MINI_TEST_MORTAL"

func TestMain(m *testing.M) {
	if size, path, ok := strings.Cut(os.Getenv(killVariable), " "); ok {
		if err := writeUntilKilled(size, path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func writeUntilKilled(size, path string) error {
	limit, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	j, err := Create(path, Header{InstanceID: "a", Attempt: 1})
	if err != nil {
		return err
	}
	if f, ok := j.file.(*os.File); ok {
		j.file = &killerFile{File: f, remaining: limit - int(j.size)}
	}
	for i := 0; ; i++ {
		if _, err := j.Append(testRecord(i)); err != nil {
			return err
		}
	}
}

// testRecord returns the i-th record that writeUntilKilled writes. Records have different
// types and lengths.
func testRecord(i int) (Type, any) {
	text := strings.Repeat("é\xff\n\"", i*i%997)
	switch i % 3 {
	case 0:
		return TypeMessage, Message{Message: model.Message{Role: model.User, Content: strings.ToValidUTF8(text, "?")}, Cause: CausePrompt}
	case 1:
		return TypeCall, Call{Cost: 0.25}
	}
	return TypeExecution, Execution{Command: "c", Output: Bytes(text), Bytes: int64(len(text))}
}

// TestKilledDuringWrite checks that a kill during a write loses only the record that was
// being written, and that the journal can be reopened.
func TestKilledDuringWrite(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for i := range 200 {
		path := filepath.Join(dir, strconv.Itoa(i))
		size := 400 + rand.N(100_000)
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", killVariable, size, path))
		out, err := cmd.CombinedOutput()
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
			t.Fatalf("the writer was not killed: %v\n%s", err, out)
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, size, len(data), "bytes in the file of the killed")
		checkAfterCrash(t, path, bytes.Count(data, []byte("\n")), bytes.LastIndexByte(data, '\n')+1)
	}
}

// checkAfterCrash checks that a journal can be read and reopened. It has the given number
// of complete lines, which are completeBytes long.
func checkAfterCrash(t *testing.T, path string, lines, completeBytes int) {
	t.Helper()
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	n := 0
	for r, err := range Read(path) {
		if err != nil {
			t.Fatalf("%d bytes do not load: %v", len(before), err)
		}
		if n++; r.ID != n {
			t.Fatalf("record %d is in line %d", r.ID, n)
		}
	}
	if n != lines && n != lines+1 { // one more if only its newline is missing
		t.Fatalf("%d bytes: %d records, of %d whole lines", len(before), n, lines)
	}
	if _, ended, err := ReadOutcome(path); ended || err != nil {
		t.Fatalf("%d bytes: ended %v, %v", len(before), ended, err)
	}
	j, err := Reopen(path, Resume{Record: n})
	if err != nil {
		t.Fatalf("%d bytes do not go on: %v", len(before), err)
	}
	j.SetSyncPolicy(SyncNever)
	_, err = j.Append(TypeOutcome, Outcome{Class: Submitted, Submission: Bytes("x")})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.HasPrefix(after, before[:completeBytes]) {
		t.Fatalf("%d bytes: complete lines have changed", len(before))
	}
	m := 0
	for _, err := range CheckOrder(Read(path)) {
		require.NoError(t, err)
		m++
	}
	if out, ended, err := ReadOutcome(path); m != n+2 || !ended || err != nil || out.Class != Submitted {
		t.Fatalf("%d bytes: continued to %d records from %d, ended %v, %v", len(before), m, n, ended, err)
	}
	require.NoError(t, WriteTrajFile(path, path+".traj.json"))
}
