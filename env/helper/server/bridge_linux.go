package server

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/sockets"
)

// bridge accepts connections for one command and passes them on as streams. A nil
// bridge does nothing.
type bridge struct {
	listener *os.File
	address  string
	streams  *helper.Streams
	slots    chan struct{} // semaphore of the open streams
	done     chan struct{} // closed by close
	lastID   uint32        // of the streams; used by accept only, until the end of the bridge
	accepter sync.WaitGroup
}

// openBridge opens the bridge of the next command. The caller holds the lock.
func (s *server) openBridge() (*bridge, error) {
	b := &bridge{
		streams: helper.NewStreams(s.out.sendStream, true),
		slots:   make(chan struct{}, helper.MaxStreams), done: make(chan struct{}),
	}
	if s.bridge != nil {
		b.lastID = s.bridge.lastID // ids are not used again, see acceptStream
	}
	if err := b.listen(); err != nil {
		return nil, err
	}
	s.bridge = b
	b.accepter.Go(b.accept)
	return b, nil
}

// maxQueue is the number of connections that wait to be accepted. The kernel resets some
// of those beyond it; it lowers the number to net.core.somaxconn, usually 4096.
const maxQueue = 4096

// listen opens a loopback port. Package net would increase the size of the helper.
func (b *bridge) listen() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = syscall.Listen(fd, maxQueue)
	}
	var name syscall.Sockaddr
	if err == nil {
		name, err = syscall.Getsockname(fd)
	}
	own, ok := name.(*syscall.SockaddrInet4)
	if err != nil || !ok {
		return errors.Join(fmt.Errorf("open socket: %w", err), syscall.Close(fd))
	}
	b.listener, b.address = os.NewFile(uintptr(fd), "bridge"), fmt.Sprintf("127.0.0.1:%d", own.Port)
	return nil
}

// close closes the listener and all connections, and waits until no more frames of
// streams are sent.
func (b *bridge) close() {
	if b == nil {
		return
	}
	close(b.done)
	_ = b.listener.Close() // was open
	b.accepter.Wait()
	b.streams.Close()
}

func (b *bridge) accept() {
	for {
		select {
		case b.slots <- struct{}{}:
		case <-b.done:
			return
		}
		conn, err := sockets.Accept(b.listener)
		if err != nil {
			return
		}
		_ = setNoDelay(conn) // without it the agent only waits longer
		b.lastID++
		_ = b.streams.Add(b.lastID, conn, func() { <-b.slots }) // cannot fail: the ids increase, and slots limits them
	}
}

func setNoDelay(conn *os.File) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		setErr = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	})
	return errors.Join(err, setErr)
}

// acceptStream processes a frame of a stream. The caller holds the lock.
func (s *server) acceptStream(f helper.Frame) error {
	if s.bridge == nil {
		return fmt.Errorf("%w: kind %q of stream %d, which was not opened", helper.ErrFrame, f.Kind, f.ID)
	}
	if err := s.bridge.streams.Accept(f); !errors.Is(err, helper.ErrUnknownStream) {
		return err
	}
	return nil // the stream has just ended
}
