package docker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// newTestConn returns a socketConn, and the engine's end of its attached stream.
func newTestConn(t *testing.T) (c *socketConn, engine net.Conn) {
	t.Helper()
	socket, err := newHostSocket(filepath.Join(shortDir(t), "x"))
	require.NoError(t, err)
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
		_, err := os.Stat(socket.dir)
		assert.ErrorIs(t, err, os.ErrNotExist, "the socket's directory is left")
	})
	return c, engineEnd
}

// shortDir returns a directory whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "m") //nolint:usetesting // the path of t.TempDir is too long
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// connectHelper connects to the socket, as a helper does.
func connectHelper(t *testing.T, c *socketConn) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(c.socket.dir, socketName))
	require.NoError(t, err)
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
	_, err := io.ReadFull(r, buf)
	require.NoError(t, err)
	return string(buf)
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

// TestDataOnUnusedStream: after the helper has connected to the socket, data on the
// attached stream is a protocol violation, because a command must have written it.
func TestDataOnUnusedStream(t *testing.T) {
	c, engine := newTestConn(t)
	connectHelper(t, c)
	_, err := engine.Write(stdoutFrame("forged"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 10))
	assert.ErrorIs(t, err, helper.ErrFrame)
}

// TestEndOfAttachedStream: the helper's last data is read after the end of the attached
// stream. Then Read returns after drainTimeout, even if the helper does not close the
// socket.
func TestEndOfAttachedStream(t *testing.T) {
	t.Parallel()
	c, engine := newTestConn(t)
	conn := connectHelper(t, c)
	_, err := conn.Write([]byte("last"))
	require.NoError(t, err)
	_ = engine.Close()
	assert.Equal(t, "last", read(t, c, 4))
	_, err = c.Read(make([]byte, 1))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
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
	assert.NoError(t, s.close())
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// multiplexed returns parts, alternately of stdout and stderr, as the engine
// multiplexes them.
func multiplexed(t testing.TB, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	streams := []io.Writer{stdcopy.NewStdWriter(&b, stdcopy.Stdout), stdcopy.NewStdWriter(&b, stdcopy.Stderr)}
	for i, p := range parts {
		_, err := streams[i%2].Write([]byte(p))
		require.NoError(t, err)
	}
	return b.Bytes()
}

func TestDemuxReader(t *testing.T) {
	whole := multiplexed(t, "out", "err", "", "more err", "put", "", "!")
	for n := range len(whole) + 1 {
		stderr := &helper.StderrBuffer{}
		got, err := io.ReadAll(&demuxReader{source: iotest.OneByteReader(bytes.NewReader(whole[:n])), stderr: stderr})
		if n == len(whole) && (err != nil || string(got) != "output!" || stderr.String() != "errmore err") {
			t.Errorf("output %q, errors %q, %v", got, stderr, err)
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	_, err := io.ReadAll(&demuxReader{source: bytes.NewReader([]byte{3, 0, 0, 0, 0, 0, 0, 1, 'x'}), stderr: io.Discard})
	assert.Error(t, err, "a stream that is neither stdout nor stderr was accepted")
}

// FuzzDemuxReader compares demuxReader with Docker's package stdcopy.
func FuzzDemuxReader(f *testing.F) {
	f.Add(multiplexed(f, "out", "err", "put"))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 9, 'x'})
	f.Add([]byte{2, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var out, errs, want, wantErrs bytes.Buffer
		d := &demuxReader{source: bytes.NewReader(data), stderr: &errs}
		_, err := io.Copy(&out, d)
		if len(data) > 4 && data[4] > 0 {
			return // stdcopy allocates as much memory as the header says
		}
		if _, stdcopyErr := stdcopy.StdCopy(&want, &wantErrs, bytes.NewReader(data)); stdcopyErr != nil || err != nil {
			return // stdcopy does not report every truncated stream
		}
		if !bytes.Equal(out.Bytes(), want.Bytes()) || !bytes.Equal(errs.Bytes(), wantErrs.Bytes()) {
			t.Errorf("output %q, errors %q; want %q, %q", &out, &errs, &want, &wantErrs)
		}
	})
}
