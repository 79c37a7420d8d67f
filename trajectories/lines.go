package trajectories

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
)

// lines reads a text line by line, in memory that one reading after the other
// uses: a journal is short, and there are thousands.
type lines struct {
	in   *bufio.Reader
	long []byte // what a line is put together in that is in two buffers of in
}

var freeLines sync.Pool

func linesOf(r io.Reader) *lines {
	l, ok := freeLines.Get().(*lines)
	if !ok {
		l = &lines{in: bufio.NewReaderSize(nil, 64<<10)}
	}
	l.in.Reset(r)
	return l
}

// release keeps the memory, unless a line was large. No line may be used after.
func (l *lines) release() {
	const kept = 1 << 20
	l.in.Reset(nil)
	if cap(l.long) > kept {
		l.long = nil
	}
	freeLines.Put(l)
}

// next is the next line, with its line feed, and of at most limit bytes. It is
// only good until the one after it is asked for; io.EOF means that there was no
// line feed.
func (l *lines) next(limit int) ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if len(l.long)+len(part) > limit {
			return nil, fmt.Errorf("line of more than %d bytes", limit)
		}
		if !errors.Is(err, bufio.ErrBufferFull) && len(l.long) == 0 {
			return part, err // most lines are in one piece
		}
		l.long = append(l.long, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, err
		}
	}
}
