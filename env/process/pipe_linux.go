package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// pipe carries the output of a command. Its reader runs until no process holds the
// write end or the runner closes: a background server must not die of SIGPIPE after
// the command that started it has ended.
type pipe struct {
	r        *os.File
	w        int // for the child; -1 once closed here
	inode    uint64
	ended    atomic.Bool   // the command has ended: read what is buffered, then discard
	complete chan struct{} // closed when the output is complete
}

// pipeSize is the capacity of a pipe, in bytes.
const pipeSize = 64 << 10

// buffers is a pool, because a new buffer for each command would burden the garbage
// collector.
var buffers = sync.Pool{New: func() any { return new([pipeSize]byte) }}

func newPipe() (*pipe, error) {
	var fd [2]int
	if err := syscall.Pipe2(fd[:], syscall.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	p := &pipe{w: fd[1], complete: make(chan struct{})}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd[0], &st); err == nil {
		p.inode = st.Ino
	}
	// Make only the read end non-blocking: programs do not expect a non-blocking
	// stdout.
	if err := syscall.SetNonblock(fd[0], true); err != nil {
		return nil, errors.Join(fmt.Errorf("open pipe: %w", err), syscall.Close(fd[0]), syscall.Close(fd[1]))
	}
	p.r = os.NewFile(uintptr(fd[0]), "output")
	return p, nil
}

// closeWriter closes the write end in this process.
func (p *pipe) closeWriter() {
	if p.w >= 0 {
		syscall.Close(p.w) //nolint:errcheck // nothing was written here
		p.w = -1
	}
}

// read copies the stream to out until the stream or the command ends, then discards
// the rest. It returns when no writer is left or r is closed.
func (p *pipe) read(out io.Writer) {
	defer p.r.Close() //nolint:errcheck // nothing was written
	pooled := buffers.Get().(*[pipeSize]byte)
	defer buffers.Put(pooled)
	buf := pooled[:]
	for {
		n, err := p.r.Read(buf)
		_, _ = out.Write(buf[:n]) // never fails
		if errors.Is(err, os.ErrDeadlineExceeded) && p.ended.Load() {
			Drain(p.r, out, buf)
			close(p.complete)
			break
		}
		if err != nil {
			close(p.complete)
			return
		}
	}
	for {
		if _, err := p.r.Read(buf); err != nil {
			return
		}
	}
}

// waitComplete returns when the output is complete: at the end of the stream, or after
// grace if another process still holds the pipe.
func (p *pipe) waitComplete(grace time.Duration) {
	select {
	case <-p.complete: // the usual case, without a timer
		return
	default:
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.complete:
		return
	case <-timer.C:
	}
	p.ended.Store(true)
	p.r.SetReadDeadline(time.Now()) //nolint:errcheck // wakes the reader; fails when it has just closed the file
	<-p.complete
}
