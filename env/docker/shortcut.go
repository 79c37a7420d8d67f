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

// What goes through the engine passes two of its processes on each way, and for
// a small command that is a fifth of all it takes. Where the engine is on this
// machine, the helper is therefore offered a socket, in a folder of its own that
// the container sees. It is the first process there and comes at once; then the
// socket is removed, before any command runs, so that nobody else ever finds it.
// Where it does not come (the engine is in a virtual machine, say), the
// conversation stays with the engine. The attached stream stays open in either
// case: its end tells each side that the other is gone.

const (
	// meetingDir is where a container sees the folder.
	meetingDir  = "/.mini-meeting"
	meetingName = "s"
	// parting is how long what the helper said last may be read after the
	// attached stream has ended.
	parting = time.Second
)

// shortcuts makes them for one engine, as long as the engine takes them.
type shortcuts struct {
	mu  sync.Mutex
	off bool
	dir string // holds their folders; made at the first
}

// offer prepares a shortcut; nil where none can be had.
func (s *shortcuts) offer() *shortcut {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off {
		return nil
	}
	if s.dir == "" {
		dir, err := scratch.New("sockets")
		if err != nil {
			s.off = true
			return nil
		}
		s.dir = dir
	}
	made, err := newShortcut(filepath.Join(s.dir, strings.ToLower(rand.Text()[:8])))
	if err != nil {
		s.off = true // the path is too long for a socket, or the disk is full
		return nil
	}
	return made
}

// blamed says whether a start failed for the sake of a shortcut, and is worth
// another try without: an engine that sees other folders than this program never
// takes one.
func (s *shortcuts) blamed(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || s.dir == "" || !strings.Contains(err.Error(), s.dir) {
		return false
	}
	s.off = true
	return true
}

func (s *shortcuts) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off = true; s.dir == "" {
		return nil
	}
	return scratch.Remove(s.dir)
}

// nearby says whether containers of an engine can see folders of this machine.
func nearby(host string) bool {
	return runtime.GOOS == "linux" && strings.HasPrefix(host, "unix://")
}

// shortcut is where one helper is awaited.
type shortcut struct {
	dir      string
	listener *net.UnixListener
}

func newShortcut(dir string) (_ *shortcut, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // commands run as anybody; the folder above is this user's alone
		return nil, fmt.Errorf("make shortcut: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	path := filepath.Join(dir, meetingName)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make shortcut: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // likewise
		return nil, errors.Join(fmt.Errorf("make shortcut: %w", err), l.Close())
	}
	return &shortcut{dir: dir, listener: l}, nil
}

func (s *shortcut) mount() mount.Mount {
	return mount.Mount{Type: mount.TypeBind, Source: s.dir, Target: meetingDir, ReadOnly: true}
}

// meeting is the socket's path as the helper sees it.
func (s *shortcut) meeting() string { return meetingDir + "/" + meetingName }

// close removes the folder; in the container an empty one stays.
func (s *shortcut) close() {
	_ = s.listener.Close()  // it was for one caller
	_ = os.RemoveAll(s.dir) // what stays goes with the folder around it
}

// crossing is the stream to a helper that was offered a shortcut: the shortcut
// once the helper has come, or the attached stream if it speaks there first.
type crossing struct {
	attached *attachment
	short    *shortcut
	pulse    *pulse
	workers  sync.WaitGroup

	decided chan struct{} // closed once the way is known
	mu      sync.Mutex
	in      io.Reader
	conn    net.Conn // nil unless the helper came
	broken  error    // why the conversation is over, where reading does not tell
}

func cross(a *attachment, s *shortcut, p *pulse) *crossing {
	c := &crossing{attached: a, short: s, pulse: p, decided: make(chan struct{})}
	c.workers.Go(c.accept)
	c.workers.Go(c.listen)
	return c
}

// decide settles the way, once.
func (c *crossing) decide(in io.Reader, conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in != nil {
		return false
	}
	c.in, c.conn = in, conn
	close(c.decided)
	return true
}

func (c *crossing) accept() {
	defer c.short.close()
	_ = c.short.listener.SetDeadline(time.Now().Add(helper.HandshakeWait)) // Close ends it too
	conn, err := c.short.listener.Accept()
	if err != nil {
		return
	}
	if !c.decide(heard{conn, c.pulse}, conn) {
		_ = conn.Close() // it spoke elsewhere
	}
}

// listen waits for the first word, or the end, of the attached stream.
func (c *crossing) listen() {
	buf := make([]byte, 512)
	n, err := c.attached.Read(buf)
	if c.decide(io.MultiReader(bytes.NewReader(buf[:n]), c.attached), nil) {
		return
	}
	if err == nil {
		c.fail(fmt.Errorf("%w: %d bytes beside the conversation", helper.ErrFrame, n))
		return
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(parting)) // mostly it has ended too
}

func (c *crossing) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = err
	_ = c.conn.Close() // what follows is not believed
}

// Read is for one goroutine at a time.
func (c *crossing) Read(p []byte) (int, error) {
	<-c.decided
	n, err := c.in.Read(p)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.broken != nil {
			err = c.broken
		}
	}
	return n, err
}

// Write goes to the attached stream until the way is known: the first word is
// said before the helper knows of the other.
func (c *crossing) Write(p []byte) (int, error) {
	select {
	case <-c.decided:
		if c.conn != nil {
			return c.conn.Write(p)
		}
	default:
	}
	return c.attached.Write(p)
}

// Close ends all of it, and a Read that waits.
func (c *crossing) Close() error {
	err := c.attached.Close()
	c.short.close()
	c.mu.Lock()
	if c.conn != nil {
		_ = c.conn.Close() // its end says all
	}
	c.mu.Unlock()
	return err
}

// settle waits for those who watch a stream that was closed.
func (c *crossing) settle() { c.workers.Wait() }
