package sockets

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// backlog is the number of connections that the kernel accepts ahead of Accept.
const backlog = 128

func open() (int, error) {
	return syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
}

// Listen returns a socket that listens at a path. A path that starts with "@" is an
// abstract name, which needs no writable file system and ends with this process.
func Listen(path string) (*os.File, error) {
	fd, err := open()
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	if err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err == nil {
		err = syscall.Listen(fd, backlog)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen at %s: %w", path, err), syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Accept waits for a connection to a socket of any family. It returns an error when the
// listener is closed.
func Accept(listener *os.File) (*os.File, error) {
	raw, err := listener.SyscallConn()
	if err != nil {
		return nil, err
	}
	for {
		connFD := -1
		var acceptErr error
		err := raw.Read(func(fd uintptr) bool {
			connFD, _, acceptErr = syscall.Accept4(int(fd), syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
			return !errors.Is(acceptErr, syscall.EAGAIN)
		})
		switch {
		case err != nil:
			return nil, err
		case acceptErr == nil:
			return os.NewFile(uintptr(connFD), "connection"), nil
		case errors.Is(acceptErr, syscall.EMFILE), errors.Is(acceptErr, syscall.ENFILE), errors.Is(acceptErr, syscall.ENOMEM):
			time.Sleep(10 * time.Millisecond) // wait until another connection is closed
		}
	}
}

// Connect connects to the socket at a path (see Listen).
func Connect(path string) (*os.File, error) {
	fd, err := open()
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		syscall.Close(fd) //nolint:errcheck // nothing was written
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Peer returns the process at the other end of a connection. Its Pid is 0 if the
// process is outside this PID namespace.
func Peer(conn *os.File) (*syscall.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer *syscall.Ucred
	var sockErr error
	err = raw.Control(func(fd uintptr) {
		peer, sockErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return peer, errors.Join(err, sockErr)
}

// SendFiles passes open files to the process at the other end of a connection.
func SendFiles(conn *os.File, files ...*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return control(conn.SyscallConn, func(raw syscall.RawConn, result *error) error {
		return raw.Write(func(fd uintptr) bool {
			*result = syscall.Sendmsg(int(fd), []byte{0}, syscall.UnixRights(fds...), nil, 0)
			return !errors.Is(*result, syscall.EAGAIN)
		})
	})
}

// ReceiveFiles receives exactly n files from SendFiles. They are set to non-blocking
// mode. The deadline of conn limits the wait.
func ReceiveFiles(conn *os.File, n int) (files []*os.File, err error) {
	space := make([]byte, syscall.CmsgSpace(4*n))
	var got int
	err = control(conn.SyscallConn, func(raw syscall.RawConn, result *error) error {
		return raw.Read(func(fd uintptr) bool {
			_, got, _, _, *result = syscall.Recvmsg(int(fd), make([]byte, 1), space, syscall.MSG_CMSG_CLOEXEC)
			return !errors.Is(*result, syscall.EAGAIN)
		})
	})
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(space[:got])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			continue // another kind of message
		}
		for _, fd := range fds {
			syscall.SetNonblock(fd, true) //nolint:errcheck // the file is read with a thread then
			files = append(files, os.NewFile(uintptr(fd), "passed file"))
		}
	}
	if len(files) != n {
		for _, f := range files {
			f.Close() //nolint:errcheck // unused
		}
		return nil, fmt.Errorf("receive files: %d arrived instead of %d", len(files), n)
	}
	return files, nil
}

// control runs a call on the descriptor of a connection, and joins both its errors.
func control(get func() (syscall.RawConn, error), call func(raw syscall.RawConn, result *error) error) error {
	raw, err := get()
	if err != nil {
		return err
	}
	var result error
	if err := call(raw, &result); err != nil {
		return err
	}
	return result
}
