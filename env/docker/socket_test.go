package docker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types"

	"github.com/minibench/mini/env/helper"
)

// newTestConn returns a socketConn, and the engine's end of its attached stream.
func newTestConn(t *testing.T) (c *socketConn, engine net.Conn) {
	t.Helper()
	socket, err := newHostSocket(filepath.Join(shortDir(t), "x"))
	if err != nil {
		t.Fatal(err)
	}
	clientEnd, engineEnd := net.Pipe()
	stderr := &helper.StderrBuffer{}
	a := &attachment{
		conn: types.NewHijackedResponse(clientEnd, ""), stderr: stderr,
		stdout: demuxReader{source: clientEnd, stderr: stderr},
	}
	c = newSocketConn(a, socket, newHeartbeat(time.Second, nil, nil))
	t.Cleanup(func() {
		_ = c.Close()
		_ = engineEnd.Close()
		c.wait()
		if _, err := os.Stat(socket.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket's directory is left: %v", err)
		}
	})
	return c, engineEnd
}

// shortDir returns a directory whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "m") //nolint:usetesting // the path of t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// connectHelper connects to the socket, as a helper does.
func connectHelper(t *testing.T, c *socketConn) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(c.socket.dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	<-c.chosen
	return conn
}

// stdoutFrame returns a frame of stdout in the engine's multiplexed stream.
func stdoutFrame(text string) []byte {
	b := make([]byte, muxHeader, muxHeader+len(text))
	b[0] = muxStdout
	binary.BigEndian.PutUint32(b[4:], uint32(len(text)))
	return append(b, text...)
}

func read(t *testing.T, r io.Reader, n int) string {
	t.Helper()
	buf := make([]byte, n)
	if _, err := io.ReadFull(r, buf); err != nil {
		t.Fatal(err)
	}
	return string(buf)
}

func TestHostSocket(t *testing.T) {
	c, engine := newTestConn(t)
	go func() { _, _ = c.Write([]byte("setup")) }() // before the helper has connected
	if got := read(t, engine, 5); got != "setup" {
		t.Errorf("the attached stream had %q", got)
	}
	conn := connectHelper(t, c)
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c, 5); got != "hello" {
		t.Errorf("read %q", got)
	}
	if _, err := c.Write([]byte("run")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, conn, 3); got != "run" {
		t.Errorf("the helper read %q", got)
	}
}

// TestHostSocketAcceptsOneConn: after the helper has connected, no other process can.
func TestHostSocketAcceptsOneConn(t *testing.T) {
	c, _ := newTestConn(t)
	path := filepath.Join(c.socket.dir, socketName)
	connectHelper(t, c)
	c.socket.close()
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		t.Error("a second connection was accepted")
	}
}

func TestAttachedStream(t *testing.T) {
	c, engine := newTestConn(t)
	go func() { _, _ = engine.Write(stdoutFrame("hello, and more")) }()
	if got := read(t, c, 15); got != "hello, and more" {
		t.Errorf("read %q", got)
	}
	go func() { _, _ = engine.Write(stdoutFrame("again")) }()
	if got := read(t, c, 5); got != "again" {
		t.Errorf("read %q", got)
	}
	go func() { _, _ = c.Write([]byte("run")) }()
	if got := read(t, engine, 3); got != "run" {
		t.Errorf("the attached stream had %q", got)
	}
}

// TestDataOnUnusedStream: after the helper has connected to the socket, data on the
// attached stream is a protocol violation, because a command must have written it.
func TestDataOnUnusedStream(t *testing.T) {
	c, engine := newTestConn(t)
	connectHelper(t, c)
	if _, err := engine.Write(stdoutFrame("forged")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 10)); !errors.Is(err, helper.ErrFrame) {
		t.Errorf("read gives %v", err)
	}
}

// TestEndOfAttachedStream: the helper's last data is read after the end of the attached
// stream. Then Read returns after drainTimeout, even if the helper does not close the
// socket.
func TestEndOfAttachedStream(t *testing.T) {
	t.Parallel()
	c, engine := newTestConn(t)
	conn := connectHelper(t, c)
	if _, err := conn.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	_ = engine.Close()
	if got := read(t, c, 4); got != "last" {
		t.Errorf("read %q", got)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read gives %v", err)
	}
}

// TestDisableSockets: sockets are disabled if an engine's error mentions their
// directory.
func TestDisableSockets(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	var s hostSockets
	socket := s.open()
	if socket == nil {
		t.Fatal("no socket")
	}
	defer socket.close()
	if s.disableOnError(errors.New("no such image")) {
		t.Error("an unrelated error disabled sockets")
	}
	if err := fmt.Errorf("create: bind source path does not exist: %s", socket.dir); !s.disableOnError(err) {
		t.Errorf("not disabled by %v", err)
	}
	if s.disableOnError(errors.New(socket.dir)) || s.open() != nil {
		t.Error("sockets are not disabled")
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
