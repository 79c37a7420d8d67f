package server

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// switchToSocket moves the connection to the client's socket. If that fails, the
// connection stays on the first stream.
func (s *server) switchToSocket(ctx context.Context, path string) {
	if path == "" {
		return
	}
	conn, err := connect(path)
	if err != nil {
		return
	}
	s.out.redirect(conn)
	go s.receive(ctx, conn)
}

// connect dials a Unix socket. Package net would increase the size of the helper by
// half.
func connect(path string) (*os.File, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		syscall.Close(fd) //nolint:errcheck // nothing was written
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
