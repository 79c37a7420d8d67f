package process

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// maxRest is the largest capacity of a pipe, in bytes.
const maxRest = 1 << 20

// Drain copies the bytes that are in a pipe to out, without waiting for more. These
// include everything that a process wrote before it exited. Drain stops after maxRest
// bytes, because another process may keep writing. r must be in non-blocking mode, as
// pipes of package os are; Drain removes its read deadline, which would make the read
// fail even if data is available.
func Drain(r *os.File, out io.Writer, buf []byte) {
	if err := r.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	conn, err := r.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool { // fails only if r is closed
		for rest := maxRest; rest > 0; {
			n, err := syscall.Read(int(fd), buf)
			if n > 0 {
				_, _ = out.Write(buf[:n]) // never fails
				rest -= n
			} else if !errors.Is(err, syscall.EINTR) {
				break // the pipe is empty
			}
		}
		return true
	})
}
