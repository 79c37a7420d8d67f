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

// crossed is a crossing whose attached stream is in the test's hands.
func crossed(t *testing.T) (c *socketConn, engine net.Conn) {
	t.Helper()
	short, err := newHostSocket(filepath.Join(shortDir(t), "x"))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	stderr := &helper.StderrBuffer{}
	a := &attachment{
		conn: types.NewHijackedResponse(ours, ""), stderr: stderr,
		stdout: demuxReader{from: ours, stderr: stderr},
	}
	c = newSocketConn(a, short, newHeartbeat(time.Second, nil, nil))
	t.Cleanup(func() {
		_ = c.Close()
		_ = theirs.Close()
		c.wait()
		if _, err := os.Stat(short.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is left: %v", err)
		}
	})
	return c, theirs
}

// shortDir is a folder whose name fits into a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "m") //nolint:usetesting // a test's own folder has too long a name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// come is what a helper does that finds the socket.
func come(t *testing.T, c *socketConn) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(c.socket.dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	<-c.chosen
	return conn
}

// said is a frame of the engine's mix.
func said(text string) []byte {
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

func TestCrossingByTheShortcut(t *testing.T) {
	c, engine := crossed(t)
	go func() { _, _ = c.Write([]byte("setup")) }() // the first word, before the helper knows
	if got := read(t, engine, 5); got != "setup" {
		t.Errorf("the attached stream had %q", got)
	}
	conn := come(t, c)
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

// Nobody else finds the socket: it takes one caller.
func TestShortcutTakesOneCaller(t *testing.T) {
	c, _ := crossed(t)
	path := filepath.Join(c.socket.dir, socketName)
	come(t, c)
	c.socket.close()
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		t.Error("a second caller was let in")
	}
}

func TestCrossingStaysWithTheEngine(t *testing.T) {
	c, engine := crossed(t)
	go func() { _, _ = engine.Write(said("hello, and more")) }()
	if got := read(t, c, 15); got != "hello, and more" {
		t.Errorf("read %q", got)
	}
	go func() { _, _ = engine.Write(said("again")) }()
	if got := read(t, c, 5); got != "again" {
		t.Errorf("read %q", got)
	}
	go func() { _, _ = c.Write([]byte("run")) }()
	if got := read(t, engine, 3); got != "run" {
		t.Errorf("the attached stream had %q", got)
	}
}

// Once the helper has come, a word on its output is nobody's: a command has got
// hold of it.
func TestWordBesideTheConversation(t *testing.T) {
	c, engine := crossed(t)
	come(t, c)
	if _, err := engine.Write(said("forged")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 10)); !errors.Is(err, helper.ErrFrame) {
		t.Errorf("read gives %v", err)
	}
}

// What the helper said last is read although the attached stream has ended; a
// helper that does not end with it is not waited for.
func TestEndOfTheAttachedStream(t *testing.T) {
	c, engine := crossed(t)
	conn := come(t, c)
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

// An engine elsewhere says in its own words that it has no such folder.
func TestShortcutsAreBlamed(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	var s hostSockets
	made := s.open()
	if made == nil {
		t.Fatal("no shortcut")
	}
	defer made.close()
	if s.disableIfBlamed(errors.New("no such image")) {
		t.Error("another failure was taken for it")
	}
	if err := fmt.Errorf("create: bind source path does not exist: %s", made.dir); !s.disableIfBlamed(err) {
		t.Errorf("not blamed: %v", err)
	}
	if s.disableIfBlamed(errors.New(made.dir)) || s.open() != nil {
		t.Error("they are offered again")
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
