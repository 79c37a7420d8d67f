package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeController is a Controller that records requests.
type fakeController struct {
	mu     sync.Mutex
	orders []runner.ControlRequest
	err    error
}

func (c *fakeController) Execute(o runner.ControlRequest) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, o)
	return "done", c.err
}

func (c *fakeController) Status(context.Context) Status { return Status{Run: "it", PID: 7} }

// newTestServer returns a listening server with its own runtime directory.
func newTestServer(t *testing.T, run string) (*fakeController, *Server) {
	t.Helper()
	if os.Getenv("XDG_RUNTIME_DIR") == "" || !strings.HasPrefix(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()) {
		runtimeFolder(t)
	}
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &fakeController{}
	s, err := Listen(run, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // does nothing more if the test has closed it
	return c, s
}

// runtimeFolder returns a short path, like a system's.
func runtimeFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt") //nolint:usetesting // the path of t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

func TestErrorResponses(t *testing.T) {
	run := t.TempDir()
	c, _ := newTestServer(t, run)
	for want, err := range map[ErrorKind]error{
		UnknownTask: &runner.UnknownTaskError{TaskID: "x"}, NotRunning: runner.ErrNotRunning, Refused: fmt.Errorf("a %w", runner.ErrAlreadyEnded),
	} {
		c.err = err
		if r, failed := Send(t.Context(), run, Request{Action: "pause"}); failed != nil || r.OK || r.Kind != want || r.Error != err.Error() {
			t.Errorf("%+v, %v", r, failed)
		}
	}
}

// Only the user has access to the socket and its directory; Close removes them.
func TestModes(t *testing.T) {
	dir, run := runtimeFolder(t), t.TempDir()
	_, s := newTestServer(t, run)
	for path, want := range map[string]fs.FileMode{
		s.path: 0o600 | fs.ModeSocket, filepath.Dir(s.path): 0o700 | fs.ModeDir, filepath.Join(run, FileName): 0o644,
	} {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&^0o133 != want&^0o133 || want&fs.ModeSocket != 0 && info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "mini"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Lstat(filepath.Join(run, FileName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", FileName, err)
	}
}

// If another user owns the directory, the next candidate is used.
func TestSocketDirs(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("as root, another user's folder is made with chown")
	}
	other := fmt.Sprintf("/tmp/mini-%d", os.Getuid())
	for name, make := range map[string]func(dir string) error{
		"link":      func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"file":      func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"long":      func(string) error { t.Setenv("XDG_RUNTIME_DIR", longFolder(t)); return nil },
		"relative":  func(string) error { t.Setenv("XDG_RUNTIME_DIR", "here"); return nil },
		"not there": func(string) error { t.Setenv("XDG_RUNTIME_DIR", "/nowhere/at/all"); return nil },
		"another user's": func(dir string) error {
			if os.Getuid() != 0 {
				t.Setenv("XDG_RUNTIME_DIR", "/root")
				return nil
			}
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 4711, 4711))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := make(filepath.Join(runtimeFolder(t), "mini")); err != nil {
				t.Fatal(err)
			}
			_, s := newTestServerIn(t, t.TempDir())
			if filepath.Dir(s.path) != other {
				t.Errorf("the socket is %s", s.path)
			}
		})
	}
	t.Run("open to others", func(t *testing.T) {
		dir := filepath.Join(runtimeFolder(t), "mini")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
		_, s := newTestServerIn(t, t.TempDir())
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(s.path) != dir {
			t.Errorf("%s: %v, %v", s.path, info.Mode(), err)
		}
	})
}

// If no directory is usable, the error lists the reasons.
func TestNoSocketDir(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := findSocketDir([]string{file, filepath.Join(file, "mini"), filepath.Join("/tmp", strings.Repeat("x", 200))}, "0123456789abcdef.sock")
	if err == nil || strings.Count(err.Error(), "is not a folder") != 2 || !strings.Contains(err.Error(), "would exceed 107 bytes") {
		t.Errorf("%v", err)
	}
}

// newTestServerIn returns a server with the current runtime directory.
func newTestServerIn(t *testing.T, run string) (*fakeController, *Server) {
	t.Helper()
	c := &fakeController{}
	s, err := Listen(run, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return c, s
}

func longFolder(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Idle, invalid or disconnecting clients do not block others.
func TestInvalidClients(t *testing.T) {
	run := t.TempDir()
	c, s := newTestServer(t, run)
	dial := func() net.Conn {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	for range 8 {
		dial() // and sends nothing
	}
	for name, text := range map[string]string{
		"no HTTP":        `{"verb":"pause"}` + "\n",
		"no body":        "GET / HTTP/1.0\r\n\r\n",
		"another type":   "POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n[1]",
		"a long header":  "POST / HTTP/1.0\r\nX: " + strings.Repeat("x", 1<<20),
		"a long request": fmt.Sprintf("POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n", maxRequest+12) + `{"verb":"` + strings.Repeat("x", maxRequest) + `"}` + "\n",
	} {
		conn := dial()
		_, _ = conn.Write([]byte(text)) // the server may stop reading
		answer, err := io.ReadAll(conn)
		if err == nil && !bytes.Contains(answer, []byte(" 4")) { // or the connection was reset
			t.Errorf("%s: %q", name, answer)
		}
		_ = conn.Close()
	}
	conn := dial()
	_, _ = conn.Write([]byte("POST / HTTP/1.0\r\nContent-Length: 33\r\n\r\n" + `{"verb":"pause","by":"somebody"}` + "\n"))
	_ = conn.Close() // does not wait for the response
	if r, err := Send(t.Context(), run, Request{Action: "drain"}); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.orders {
		if o.Source != "ctl" || o.Action != runner.Pause && o.Action != runner.Drain {
			t.Errorf("%+v", o)
		}
	}
}

// Close does not wait for clients.
func TestCloseWithClients(t *testing.T) {
	_, s := newTestServer(t, t.TempDir())
	conn, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took >= timeout {
		t.Errorf("it took %v", took)
	}
}

// Files of killed processes are detected and removed.
func TestStale(t *testing.T) {
	dir, run := runtimeFolder(t), t.TempDir()
	newTestServer(t, run)
	lease, err := os.ReadFile(filepath.Join(run, FileName))
	if err != nil {
		t.Fatal(err)
	}
	put := func(change func(m map[string]any)) {
		t.Helper()
		var m map[string]any
		if err := json.Unmarshal(lease, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		data, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(filepath.Join(run, FileName), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The files that a killed process leaves, with the socket.
	bound := filepath.Join(dir, "mini", "0123456789abcdef.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: bound, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "mini", "fedcba9876543210.sock")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(m map[string]any)
		want   string
		over   bool
	}{
		"dead":         {func(m map[string]any) { m["path"] = bound }, "the run has ended", true},
		"gone":         {func(m map[string]any) { m["path"] = filepath.Join(dir, "mini", "00000000ffffffff.sock") }, "the run has ended", true},
		"another host": {func(m map[string]any) { m["hostname"] = "far\x1b[2J" }, `another machine ("far\x1b[2J")`, true},
		"no socket":    {func(m map[string]any) { m["path"] = plain }, "is not a file of mini", false},
		"elsewhere":    {func(m map[string]any) { m["path"] = "/run/docker.sock" }, "is not a file of mini", false},
		"relative":     {func(m map[string]any) { m["path"] = "0123456789abcdef.sock" }, "is not a file of mini", false},
		"format":       {func(m map[string]any) { m["format"] = "mini-control-1" }, "want mini-control-2", false},
	} {
		t.Run(name, func(t *testing.T) {
			put(tt.change)
			_, err := Send(t.Context(), run, Request{Action: StatusAction})
			_, over := errors.AsType[*NotRunningError](err)
			if err == nil || !strings.Contains(err.Error(), tt.want) || over != tt.over {
				t.Errorf("%v", err)
			}
		})
	}
	put(func(map[string]any) {})
	if _, err := Send(t.Context(), run, Request{Action: StatusAction}); err != nil {
		t.Error(err)
	}
	again := t.TempDir() // left by a killed process
	if err := os.Rename(bound, filepath.Join(dir, "mini", socketName(again))); err != nil {
		t.Fatal(err)
	}
	newTestServer(t, again)
	if _, err := Send(t.Context(), again, Request{Action: StatusAction}); err != nil {
		t.Error(err)
	}
	if _, err := Send(t.Context(), t.TempDir(), Request{}); err == nil || !strings.Contains(err.Error(), "no running batch accepts requests there") {
		t.Errorf("%v", err)
	}
	pipe := t.TempDir()
	if err := os.Mkdir(filepath.Join(pipe, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Send(t.Context(), pipe, Request{}); err == nil || !strings.Contains(err.Error(), "not a file of mini") {
		t.Errorf("%v", err)
	}
}

// Send gives up on a server that does not answer.
func TestSendToNoRun(t *testing.T) {
	run := t.TempDir()
	_, s := newTestServer(t, run)
	silent := strings.TrimSuffix(s.path, "0.sock")
	silent = filepath.Join(filepath.Dir(silent), "aaaaaaaaaaaaaaaa.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: silent, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := (lease{Format: format, Path: silent, Host: hostname()}).write(run); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Send(ctx, run, Request{Action: StatusAction}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// The running tasks are listed in the order in which their attempts started. Only a
// command that runs is shown.
func TestSetBatch(t *testing.T) {
	b := batch.New()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var empty Status
	if empty.SetBatch(b, at); empty.Elapsed != 0 || empty.Running == nil || len(empty.Running) > 0 {
		t.Errorf("before the run: %+v", empty)
	}
	for i, e := range []runner.Event{
		{Type: runner.RunStarted, Total: 3, Workers: 3},
		{Type: runner.AttemptStarted, Instance: "a", Repetition: 1, Attempt: 1},
		{Type: runner.AttemptStarted, Instance: "a", Repetition: 2, Attempt: 2},
		{Type: runner.PhaseChanged, Phase: runner.PhaseRunning, Instance: "a", Repetition: 2, Step: 3, Cost: 0.5, Command: "ls"},
		{Type: runner.AttemptStarted, Instance: "a", Repetition: 1, Attempt: 3}, // a retry
		{Type: runner.PhaseChanged, Phase: runner.PhaseRunning, Instance: "a", Repetition: 1, Step: 1, Command: "pwd"},
		{Type: runner.PhaseChanged, Phase: runner.PhaseThinking, Instance: "a", Repetition: 1, Step: 2},
	} {
		e.Time = at.Add(time.Duration(i) * time.Second)
		b.Update(e)
	}
	var got Status
	got.SetBatch(b, at.Add(10*time.Second))
	want := Status{Elapsed: 10, Running: []RunningTask{
		{TaskID: "a#2", Attempt: 2, Phase: runner.PhaseRunning, Step: 3, Cost: 0.5, Elapsed: 8, Command: "ls"},
		{TaskID: "a#1", Attempt: 3, Phase: runner.PhaseThinking, Step: 2, Elapsed: 6},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
