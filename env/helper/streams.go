package helper

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// BridgeVariable is the environment variable of a command with a bridge: the address,
// as HOST:PORT, to which the command connects.
const BridgeVariable = "MINI_BRIDGE"

// Limits of the streams of a command.
const (
	// MaxStreams is the maximum number of open streams. Further connections wait in the
	// accept queue of the kernel.
	MaxStreams = 64
	// StreamWindow is the maximum number of Data frames in flight per stream and
	// direction, so that a slow reader holds up at most StreamWindow chunks.
	StreamWindow = 4
)

// ErrUnknownStream means that a frame names a stream that is not open.
var ErrUnknownStream = fmt.Errorf("%w: frame of a stream that is not open", ErrFrame)

// Streams copies the connections of one command to and from frames. Both sides use it:
// the helper with the connections that it accepts, the client with pipes.
type Streams struct {
	send    func(Frame) error // may be called concurrently
	opens   bool              // this side sends Open frames
	done    chan struct{}     // closed by Close
	workers sync.WaitGroup

	mu     sync.Mutex
	open   map[uint32]*stream
	lastID uint32
	closed bool
}

// stream is one connection. It ends when both sides have sent Close.
type stream struct {
	id       uint32
	conn     io.ReadWriteCloser
	in       chan []byte   // received chunks; capacity StreamWindow; closed by a Close frame
	credit   Credit        // for the chunks to send
	gone     chan struct{} // closed when conn is closed
	released func()        // runs when nothing of the stream is left; may be nil
	// Guarded by Streams.mu.
	sentClose, gotClose, drained bool
}

// NewStreams returns Streams that send their frames with send. opens says that Add
// announces streams to the other side with Open frames.
func NewStreams(send func(Frame) error, opens bool) *Streams {
	return &Streams{send: send, opens: opens, done: make(chan struct{}), open: map[uint32]*stream{}}
}

// Add starts copying a connection, which it closes when the stream ends. Ids must
// increase, and calls must not be concurrent. released runs at the end of the stream,
// unless it is nil.
func (s *Streams) Add(id uint32, conn io.ReadWriteCloser, released func()) error {
	st, err := s.register(id, conn)
	if err != nil {
		_ = conn.Close() // unused
		return err
	}
	st.released = released
	if s.opens {
		_ = s.send(Frame{Kind: KindOpen, ID: id}) // fails if the frames' connection has ended
	}
	go s.sendLoop(st)
	go s.receiveLoop(st)
	return nil
}

// register makes Accept know a stream before the other side does.
func (s *Streams) register(id uint32, conn io.ReadWriteCloser) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || id <= s.lastID || len(s.open) >= MaxStreams {
		return nil, fmt.Errorf("%w: stream %d after %d, with %d open", ErrFrame, id, s.lastID, len(s.open))
	}
	st := &stream{id: id, conn: conn, in: make(chan []byte, StreamWindow), credit: NewCredit(StreamWindow), gone: make(chan struct{})}
	s.lastID, s.open[id] = id, st
	s.workers.Add(2) // for sendLoop and receiveLoop
	return st, nil
}

// Accept processes a frame of the other side, without blocking. Its errors wrap
// ErrFrame.
func (s *Streams) Accept(f Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.open[f.ID]
	switch {
	case st == nil && f.Kind == KindStreamCredit && f.ID <= s.lastID:
		return nil // for chunks that were written after the stream had ended
	case st == nil || st.gotClose && f.Kind != KindStreamCredit:
		return ErrUnknownStream
	case f.Kind == KindStreamCredit:
		return st.credit.Grant(f.Body)
	case f.Kind == KindStreamClose && len(f.Body) == 0:
		st.gotClose = true
		close(st.in)
		s.release(st)
		return nil
	case f.Kind != KindStreamData || len(f.Body) == 0 || len(f.Body) > MaxChunk:
		return fmt.Errorf("%w: kind %q of stream %d with %d bytes", ErrFrame, byte(f.Kind), f.ID, len(f.Body))
	}
	select {
	case st.in <- f.Body:
		return nil
	default:
		return fmt.Errorf("%w: more than %d chunks of stream %d in flight", ErrFrame, StreamWindow, f.ID)
	}
}

// Close closes all connections, and waits until no more frames are sent.
func (s *Streams) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	for _, st := range s.open {
		_ = st.conn.Close() // may be closed already
	}
	s.mu.Unlock()
	s.workers.Wait()
}

// release forgets a stream that both sides have closed. The caller has just set one of
// its flags and holds the lock.
func (s *Streams) release(st *stream) {
	if !st.sentClose || !st.gotClose {
		return
	}
	delete(s.open, st.id)
	if st.drained && st.released != nil {
		st.released()
	}
}

// sendLoop sends what it reads from the connection, and Close at its end.
func (s *Streams) sendLoop(st *stream) {
	defer s.workers.Done()
	err := s.sendChunks(st)
	if errors.Is(err, errStreamsClosed) {
		return
	}
	// The side that opens streams never counts fewer of them than the other: it forgets
	// one after its last frame, the other before.
	if !s.opens {
		s.markSentClose(st)
	}
	_ = s.send(Frame{Kind: KindStreamClose, ID: st.id}) // fails if the frames' connection has ended
	if s.opens {
		s.markSentClose(st)
	}
}

func (s *Streams) markSentClose(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.sentClose = true
	s.release(st)
}

var errStreamsClosed = errors.New("streams are closed")

func (s *Streams) sendChunks(st *stream) error {
	buf := make([]byte, MaxChunk/2)
	for {
		select {
		case <-st.credit:
		case <-st.gone:
			return io.ErrClosedPipe
		case <-s.done:
			return errStreamsClosed
		}
		n, err := st.conn.Read(buf)
		if n > 0 {
			if err := s.send(Frame{Kind: KindStreamData, ID: st.id, Body: buf[:n]}); err != nil {
				return err
			}
		}
		select {
		case <-s.done:
			return errStreamsClosed
		default:
		}
		if err != nil {
			return err
		}
	}
}

// receiveLoop writes the received chunks to the connection and closes it after the last
// one. Data that arrives when the connection has failed gets no credit.
func (s *Streams) receiveLoop(st *stream) {
	defer s.workers.Done()
	defer func() {
		_ = st.conn.Close() // the other side sees the end in any case
		close(st.gone)
		s.mu.Lock()
		defer s.mu.Unlock()
		st.drained = true
		s.release(st)
	}()
	for pending := 0; ; {
		select {
		case chunk, ok := <-st.in:
			if !ok {
				return
			}
			if _, err := st.conn.Write(chunk); err != nil {
				return
			}
		case <-s.done:
			return
		}
		if pending++; pending == StreamWindow/2 {
			pending = 0
			if err := s.send(Frame{Kind: KindStreamCredit, ID: st.id, Body: EncodeWindowUpdate(StreamWindow / 2)}); err != nil {
				return
			}
		}
	}
}
