package docker

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/mount"

	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/scratch"
)

// A message through the engine passes two of its processes in each direction, which
// takes a fifth of the time of a small command. If the engine is on this machine,
// the helper is therefore offered a Unix socket in a directory that the container
// mounts. The helper is PID 1 and connects at once. Then the socket is removed,
// before any command runs, so that no other process can connect. If the helper does
// not connect, for example because the engine runs in a virtual machine, it uses
// the attached stream. The attached stream stays open in either case: its end tells
// each side that the other has exited.

const (
	// socketDir is the directory of the socket in the container.
	socketDir  = "/.mini-meeting"
	socketName = "s"
	// drainTimeout is how long to read the helper's last messages after the
	// attached stream has ended.
	drainTimeout = 5 * time.Second
)

// hostSockets creates the sockets of one engine.
type hostSockets struct {
	mu       sync.Mutex
	disabled bool   // sockets do not work with this engine
	dir      string // parent of the sockets' directories; created with the first
}

// open creates a socket. It returns nil if sockets are disabled or the creation fails.
func (s *hostSockets) open() *hostSocket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disabled {
		return nil
	}
	if s.dir == "" {
		dir, err := scratch.New("sockets")
		if err != nil {
			s.disabled = true
			return nil
		}
		s.dir = dir
	}
	socket, err := newHostSocket(filepath.Join(s.dir, strings.ToLower(rand.Text()[:8])))
	if err != nil {
		s.disabled = true // the path is too long for a socket, or the disk is full
		return nil
	}
	return socket
}

// disableOnError disables sockets if the error of a start mentions their directory, and
// reports whether it did: a retry may then succeed. An engine that does not see the
// directories of this machine fails this way every time.
func (s *hostSockets) disableOnError(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disabled || s.dir == "" || !strings.Contains(err.Error(), s.dir) {
		return false
	}
	s.disabled = true
	return true
}

func (s *hostSockets) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disabled = true; s.dir == "" {
		return nil
	}
	return scratch.Remove(s.dir)
}

// isLocal reports whether containers of the engine may be able to mount directories of
// this machine.
func isLocal(host string) bool {
	return runtime.GOOS == "linux" && strings.HasPrefix(host, "unix://")
}

// hostSocket is a listening socket for one helper.
type hostSocket struct {
	dir      string
	listener *net.UnixListener
}

func newHostSocket(dir string) (_ *hostSocket, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // commands may run as any user; the parent is private
		return nil, fmt.Errorf("create socket: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	path := filepath.Join(dir, socketName)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("create socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // likewise
		return nil, errors.Join(fmt.Errorf("create socket: %w", err), l.Close())
	}
	return &hostSocket{dir: dir, listener: l}, nil
}

func (s *hostSocket) mount() mount.Mount {
	return mount.Mount{Type: mount.TypeBind, Source: s.dir, Target: socketDir, ReadOnly: true}
}

// containerPath is the socket's path in the container.
func (s *hostSocket) containerPath() string { return socketDir + "/" + socketName }

// close removes the directory; the container keeps an empty one.
func (s *hostSocket) close() {
	_ = s.listener.Close()  // it accepts one connection only
	_ = os.RemoveAll(s.dir) // hostSockets.close removes what is left
}

// socketConn is the connection to a helper that was offered a socket. It uses the
// socket if the helper connects to it, and the attached stream if the helper writes
// there first.
type socketConn struct {
	attached  *attachment
	socket    *hostSocket
	heartbeat *heartbeat
	workers   sync.WaitGroup

	chosen chan struct{} // closed when reader and conn are set
	mu     sync.Mutex
	reader io.Reader
	conn   net.Conn // nil if the attached stream is used
	err    error    // replaces the error of Read
}

func newSocketConn(a *attachment, s *hostSocket, h *heartbeat) *socketConn {
	c := &socketConn{attached: a, socket: s, heartbeat: h, chosen: make(chan struct{})}
	c.workers.Go(c.accept)
	c.workers.Go(c.readAttached)
	return c
}

// choose sets the stream to use. It returns false if another was chosen before.
func (c *socketConn) choose(reader io.Reader, conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reader != nil {
		return false
	}
	c.reader, c.conn = reader, conn
	close(c.chosen)
	return true
}

func (c *socketConn) accept() {
	defer c.socket.close()
	_ = c.socket.listener.SetDeadline(time.Now().Add(helper.HandshakeTimeout)) // Close ends it too
	conn, err := c.socket.listener.Accept()
	if err != nil {
		return
	}
	if !c.choose(aliveReader{conn, c.heartbeat}, conn) {
		_ = conn.Close() // the helper uses the attached stream
	}
}

// readAttached waits for the first bytes, or the end, of the attached stream.
func (c *socketConn) readAttached() {
	buf := make([]byte, 512)
	n, err := c.attached.Read(buf)
	if c.choose(io.MultiReader(bytes.NewReader(buf[:n]), c.attached), nil) {
		return
	}
	if err == nil {
		c.fail(fmt.Errorf("%w: %d bytes on the attached stream", helper.ErrFrame, n))
		return
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(drainTimeout)) // usually conn has ended too
}

func (c *socketConn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	_ = c.conn.Close() // do not trust later messages
}

// Read must not be called concurrently.
func (c *socketConn) Read(p []byte) (int, error) {
	<-c.chosen
	n, err := c.reader.Read(p)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.err != nil {
			err = c.err
		}
	}
	return n, err
}

// Write writes to the attached stream until a stream is chosen: the first message
// tells the helper about the socket.
func (c *socketConn) Write(p []byte) (int, error) {
	select {
	case <-c.chosen:
		if c.conn != nil {
			return c.conn.Write(p)
		}
	default:
	}
	return c.attached.Write(p)
}

// Close closes all streams and ends a blocked Read.
func (c *socketConn) Close() error {
	err := c.attached.Close()
	c.socket.close()
	c.mu.Lock()
	if c.conn != nil {
		_ = c.conn.Close() // the error does not matter
	}
	c.mu.Unlock()
	return err
}

// wait waits for the goroutines of a closed connection.
func (c *socketConn) wait() { c.workers.Wait() }
