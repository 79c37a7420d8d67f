package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// pipe carries a command's output. Its reader lives until nobody holds the
// other end any more or the runner closes: a server in the background must not
// die of SIGPIPE because the command that started it has returned.
type pipe struct {
	r       *os.File
	w       int // for the child; -1 once closed here
	inode   uint64
	ending  atomic.Bool   // the command has ended: take what is there and no more
	settled chan struct{} // closed when the output is complete
}

// pipeSize is what a pipe holds, in bytes.
const pipeSize = 64 << 10

// buffers serve one command after another; a new one for each would keep the
// collector busy.
var buffers = sync.Pool{New: func() any { return new([pipeSize]byte) }}

func newPipe() (*pipe, error) {
	var fd [2]int
	if err := syscall.Pipe2(fd[:], syscall.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	p := &pipe{w: fd[1], settled: make(chan struct{})}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd[0], &st); err == nil {
		p.inode = st.Ino
	}
	// Only the read end: a program that finds its stdout non-blocking breaks.
	if err := syscall.SetNonblock(fd[0], true); err != nil {
		return nil, errors.Join(fmt.Errorf("open pipe: %w", err), syscall.Close(fd[0]), syscall.Close(fd[1]))
	}
	p.r = os.NewFile(uintptr(fd[0]), "output")
	return p, nil
}

// closeWriter gives up this process's hold on the write end.
func (p *pipe) closeWriter() {
	if p.w >= 0 {
		syscall.Close(p.w) //nolint:errcheck // nothing was written here
		p.w = -1
	}
}

// read fills out until the end of the stream or of the command, then throws
// away what comes later. It returns when no writer is left or r is closed.
func (p *pipe) read(out *Output) {
	defer p.r.Close() //nolint:errcheck // nothing was written
	pooled := buffers.Get().(*[pipeSize]byte)
	defer buffers.Put(pooled)
	buf := pooled[:]
	for {
		n, err := p.r.Read(buf)
		out.add(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) && p.ending.Load() {
			p.drain(out, buf)
			close(p.settled)
			break
		}
		if err != nil {
			close(p.settled)
			return
		}
	}
	for {
		if _, err := p.r.Read(buf); err != nil {
			return
		}
	}
}

// settle returns once the output is complete: at the end of the stream, or
// after grace when somebody else still holds the pipe.
func (p *pipe) settle(grace time.Duration) {
	select {
	case <-p.settled: // mostly, and without a timer
		return
	default:
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.settled:
		return
	case <-timer.C:
	}
	p.ending.Store(true)
	p.r.SetReadDeadline(time.Now()) //nolint:errcheck // wakes the reader; fails when it has just closed the file
	<-p.settled
}

// drain takes what lies in the pipe at this moment. The count is asked once:
// what the ended shell wrote is within it, and a writer that never stops cannot
// prolong it. A read under an expired deadline would fail in spite of waiting
// data, so the deadline goes first.
func (p *pipe) drain(out *Output, buf []byte) {
	if err := p.r.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	conn, err := p.r.SyscallConn()
	if err != nil {
		return
	}
	left := -1
	for left != 0 {
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			if left < 0 {
				left = waiting(fd)
			}
			if left > 0 {
				n, _ = syscall.Read(int(fd), buf[:min(left, len(buf))])
			}
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		left -= n
		out.add(buf[:n])
	}
}

// waiting asks how many bytes can be read without blocking.
func waiting(fd uintptr) int {
	var n int32
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&n))); errno != 0 { //nolint:gosec // FIONREAD wants the address of an int
		return 0
	}
	return int(n)
}
