package control

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerUID returns the user ID of the process at the other end of a Unix socket.
func peerUID(c net.Conn) (uid int, err error) {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return 0, errors.New("get peer credentials: not a Unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, credErr); err != nil {
		return 0, fmt.Errorf("get peer credentials: %w", err)
	}
	return int(cred.Uid), nil
}
