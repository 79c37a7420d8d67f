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

	"go.uber.org/goleak"

	"github.com/minibench/mini/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clerk writes down what he is asked for.
type clerk struct {
	mu     sync.Mutex
	orders []runner.Order
	err    error
}

func (c *clerk) Do(o runner.Order) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, o)
	return "done", c.err
}

func (c *clerk) Status(context.Context) Status { return Status{Run: "it", PID: 7} }

// office is a run that takes orders, with a runtime folder of its own.
func office(t *testing.T, run string) (*clerk, *Server) {
	t.Helper()
	if os.Getenv("XDG_RUNTIME_DIR") == "" || !strings.HasPrefix(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()) {
		runtimeFolder(t)
	}
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &clerk{}
	s, err := Listen(run, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a second time, where the test did
	return c, s
}

// runtimeFolder is short, as those of systems are.
func runtimeFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt") //nolint:usetesting // that of t is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

func TestOrders(t *testing.T) {
	runtimeFolder(t)
	long := strings.Repeat("a long name ", 8)
	for name, dir := range map[string]string{
		"plain": "run", "spaces and unicode": "läufe ♥ $(x) 'q'", "long": filepath.Join(long, long, long),
	} {
		t.Run(name, func(t *testing.T) {
			run := filepath.Join(t.TempDir(), dir)
			c, s := office(t, run)
			if n := len(s.path); n > 107 {
				t.Errorf("the path has %d bytes", n)
			}
			t.Chdir(filepath.Dir(run))
			reply, err := Ask(t.Context(), filepath.Base(run), Request{Verb: "kill", Who: "a#2"})
			if err != nil || !reply.OK || reply.Text != "done" {
				t.Errorf("%+v, %v", reply, err)
			}
			if len(c.orders) != 1 || c.orders[0] != (runner.Order{Action: runner.Kill, Who: "a#2", By: "ctl"}) {
				t.Errorf("%+v", c.orders)
			}
			reply, err = Ask(t.Context(), run, Request{Verb: StatusVerb})
			if err != nil || reply.Status == nil || reply.Status.PID != 7 {
				t.Errorf("%+v, %v", reply, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	run := t.TempDir()
	c, _ := office(t, run)
	for want, err := range map[Kind]error{
		Unknown: &runner.UnknownError{Who: "x"}, Over: runner.ErrNotRunning, Refused: fmt.Errorf("a %w", runner.ErrEnded),
	} {
		c.err = err
		if r, failed := Ask(t.Context(), run, Request{Verb: "pause"}); failed != nil || r.OK || r.Kind != want || r.Error != err.Error() {
			t.Errorf("%+v, %v", r, failed)
		}
	}
}

// The socket is this user's alone, its folder too, and nothing is left at the end.
func TestModes(t *testing.T) {
	dir, run := runtimeFolder(t), t.TempDir()
	_, s := office(t, run)
	for path, want := range map[string]fs.FileMode{
		s.path: 0o600 | fs.ModeSocket, filepath.Dir(s.path): 0o700 | fs.ModeDir, filepath.Join(run, File): 0o644,
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
	if _, err := os.Lstat(filepath.Join(run, File)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", File, err)
	}
}

// What others have made where the folder should be is not used; another place is.
func TestPlaces(t *testing.T) {
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
			_, s := office2(t, t.TempDir())
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
		_, s := office2(t, t.TempDir())
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(s.path) != dir {
			t.Errorf("%s: %v, %v", s.path, info.Mode(), err)
		}
	})
}

// Where there is no place at all, it is said why for each.
func TestNoPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := findPlace([]string{file, filepath.Join(file, "mini"), filepath.Join("/tmp", strings.Repeat("x", 200))}, "0123456789abcdef.sock")
	if err == nil || strings.Count(err.Error(), "is not a folder") != 2 || !strings.Contains(err.Error(), "has 107 bytes at most") {
		t.Errorf("%v", err)
	}
}

// office2 is an office with the runtime folder as it is.
func office2(t *testing.T, run string) (*clerk, *Server) {
	t.Helper()
	c := &clerk{}
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

// Clients that say nothing, or nonsense, or go away, hold up nobody for long.
func TestNonsense(t *testing.T) {
	run := t.TempDir()
	c, s := office(t, run)
	dial := func() net.Conn {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	for range 8 {
		dial() // and says nothing
	}
	for name, text := range map[string]string{
		"no HTTP":        `{"verb":"pause"}` + "\n",
		"no body":        "GET / HTTP/1.0\r\n\r\n",
		"another type":   "POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n[1]",
		"a long header":  "POST / HTTP/1.0\r\nX: " + strings.Repeat("x", 1<<20),
		"a long request": fmt.Sprintf("POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n", maxRequest+12) + `{"verb":"` + strings.Repeat("x", maxRequest) + `"}` + "\n",
	} {
		conn := dial()
		_, _ = conn.Write([]byte(text)) // it need not take all
		answer, err := io.ReadAll(conn)
		if err == nil && !bytes.Contains(answer, []byte(" 4")) { // or the connection was reset
			t.Errorf("%s: %q", name, answer)
		}
		_ = conn.Close()
	}
	conn := dial()
	_, _ = conn.Write([]byte("POST / HTTP/1.0\r\nContent-Length: 33\r\n\r\n" + `{"verb":"pause","by":"somebody"}` + "\n"))
	_ = conn.Close() // does not wait for the answer
	if r, err := Ask(t.Context(), run, Request{Verb: "drain"}); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.orders {
		if o.By != "ctl" || o.Action != runner.Pause && o.Action != runner.Drain {
			t.Errorf("%+v", o)
		}
	}
}

// A run that ends does not wait for a client.
func TestCloseWithClients(t *testing.T) {
	_, s := office(t, t.TempDir())
	conn, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("it took %v", took)
	}
}

// What killed minis have left is told from what is there, and removed.
func TestStale(t *testing.T) {
	dir, run := runtimeFolder(t), t.TempDir()
	_, s := office(t, run)
	lease, err := os.ReadFile(filepath.Join(run, File))
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
			err = os.WriteFile(filepath.Join(run, File), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// As killed, with its socket.
	bound := filepath.Join(dir, "mini", "0123456789abcdef.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: bound, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(l.Close(), os.Chtimes(bound, old, old)); err != nil {
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
		"dead":         {func(m map[string]any) { m["path"] = bound }, "the run is over", true},
		"gone":         {func(m map[string]any) { m["path"] = filepath.Join(dir, "mini", "00000000ffffffff.sock") }, "the run is over", true},
		"another host": {func(m map[string]any) { m["hostname"] = "far\x1b[2J" }, `another machine ("far\x1b[2J")`, true},
		"no socket":    {func(m map[string]any) { m["path"] = plain }, "is not what mini writes", false},
		"elsewhere":    {func(m map[string]any) { m["path"] = "/run/docker.sock" }, "is not what mini writes", false},
		"relative":     {func(m map[string]any) { m["path"] = "0123456789abcdef.sock" }, "is not what mini writes", false},
		"format":       {func(m map[string]any) { m["format"] = "mini-control-1" }, "this mini knows mini-control-2", false},
	} {
		t.Run(name, func(t *testing.T) {
			put(tt.change)
			_, err := Ask(t.Context(), run, Request{Verb: StatusVerb})
			_, over := errors.AsType[*NotRunningError](err)
			if err == nil || !strings.Contains(err.Error(), tt.want) || over != tt.over {
				t.Errorf("%v", err)
			}
		})
	}
	put(func(map[string]any) {})
	if _, err := Ask(t.Context(), run, Request{Verb: StatusVerb}); err != nil {
		t.Error(err)
	}
	_, second := office(t, t.TempDir()) // sweeps
	for path, want := range map[string]bool{bound: false, plain: true, s.path: true, second.path: true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Ask(t.Context(), t.TempDir(), Request{}); err == nil || !strings.Contains(err.Error(), "no batch is running there") {
		t.Errorf("%v", err)
	}
	pipe := t.TempDir()
	if err := os.Mkdir(filepath.Join(pipe, File), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(t.Context(), pipe, Request{}); err == nil || !strings.Contains(err.Error(), "not what mini writes") {
		t.Errorf("%v", err)
	}
}

// A server that does not answer is not waited for for ever.
func TestAskOfNobody(t *testing.T) {
	run := t.TempDir()
	_, s := office(t, run)
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
	if _, err := Ask(ctx, run, Request{Verb: StatusVerb}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestWatch(t *testing.T) {
	var w Watch
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tell := func(after time.Duration, e runner.Event) {
		at = at.Add(after)
		e.Time = at
		w.Event(e)
	}
	tell(0, runner.Event{Type: runner.RunStarted})
	tell(time.Second, runner.Event{Type: runner.AttemptStarted, Instance: "a", Sample: 1, Attempt: 1})
	tell(time.Second, runner.Event{Type: runner.AttemptStarted, Instance: "a", Sample: 2, Attempt: 2})
	tell(0, runner.Event{Type: runner.Doing, Phase: runner.Waiting, Instance: "a"}) // for an image
	tell(0, runner.Event{Type: runner.Doing, Phase: runner.Running, Instance: "a", Sample: 2, Step: 3, Cost: 0.5, Command: "ls"})
	tell(0, runner.Event{Type: runner.Step, Instance: "a", Sample: 2, Step: 4, Cost: 0.75})
	rows, elapsed := w.Rows(at.Add(time.Second))
	if len(rows) != 2 || elapsed != 3*time.Second || rows[0].Phase != runner.Waiting || rows[0].Elapsed != 2 {
		t.Fatalf("%+v, %v", rows, elapsed)
	}
	if r := rows[1]; r.Who != "a#2" || r.Step != 4 || r.Cost != 0.75 || r.Command != "ls" || r.Phase != runner.Running {
		t.Errorf("%+v", r)
	}
	tell(0, runner.Event{Type: runner.Doing, Phase: runner.Scrubbing, Instance: "a", Text: "img:1"}) // of all samples that start
	tell(0, runner.Event{Type: runner.Doing, Phase: runner.Scrubbing, Instance: "a"})
	if rows, _ := w.Rows(at); rows[0].Phase != runner.Scrubbing || rows[1].Phase != runner.Running {
		t.Errorf("%+v", rows)
	}
	tell(0, runner.Event{Type: runner.Doing, Phase: runner.Left, Instance: "a", Sample: 1})
	if rows, _ := w.Rows(at); len(rows) != 1 || rows[0].Who != "a#2" {
		t.Errorf("%+v", rows)
	}
}
