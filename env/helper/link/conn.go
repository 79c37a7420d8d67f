package link

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Limits and times of a Conn.
const (
	// Window is how many bytes an end sends ahead of their acknowledgement, and
	// about how many it keeps for its reader.
	Window = 1 << 20
	// ackInterval is the number of received bytes after which an end sends an
	// acknowledgement, if no record of data has carried one.
	ackInterval = Window / 4
	// pingInterval is how long an end stays silent; proxies end idle connections,
	// usually after five minutes. maxSilence is how long it waits for the other.
	pingInterval = 20 * time.Second
	maxSilence   = 3 * pingInterval
	// closeTimeout is how long Close may take to tell the other end.
	closeTimeout = time.Second
	// keptBuffer is the capacity of an empty buffer above which it is released: most
	// links are idle most of the time.
	keptBuffer = 16 << 10
)

// Conn is one end of a link. Its methods are safe for concurrent use, with one reader
// and one writer.
type Conn struct {
	mu       sync.Mutex
	readable sync.Cond // data, the end of the stream, or an error
	writable sync.Cond // room, or an error
	consumed sync.Cond // the reader has taken data
	key      []byte    // of a server: nil until it is known
	isServer bool

	unacked     bytes.Buffer // the bytes sent or to be sent from offset acked on
	acked       uint64
	in          bytes.Buffer // received, and not read
	received    uint64
	remoteEnded bool // the other end has closed the link

	established bool // the other end has proven that it knows the key
	session     *session
	downSince   time.Time // when the last session ended
	err         error     // why the link has ended
}

// session is one connection of a link.
type session struct {
	conn          io.ReadWriteCloser
	send, receive *sealer
	wake          chan struct{} // capacity 1: the writer has something to do
	done          chan struct{} // closed when the session ends
	sent          uint64        // offset of the next byte to send
	ackSent       uint64        // the last acknowledgement sent
}

// NewClient returns the end that makes the connections. key has KeySize bytes.
func NewClient(key []byte) *Conn { return newConn(key, false) }

// NewServer returns the end that accepts connections.
func NewServer() *Conn { return newConn(nil, true) }

func newConn(key []byte, isServer bool) *Conn {
	c := &Conn{key: key, isServer: isServer, downSince: time.Now()}
	c.readable.L, c.writable.L, c.consumed.L = &c.mu, &c.mu, &c.mu
	return c
}

// Run uses conn until it ends, and returns the reason. Run closes conn. If another
// connection is in use, it is replaced as soon as the other end of conn has proven that
// it knows the key. On a client, calls must not be concurrent, and an error that wraps
// ErrForged also ends the link. connected, unless nil, is called when conn is in use.
func (c *Conn) Run(conn io.ReadWriteCloser, connected func()) error {
	defer conn.Close() //nolint:errcheck // its errors do not matter any more
	s := &session{conn: conn, wake: make(chan struct{}, 1), done: make(chan struct{})}
	reader := bufio.NewReaderSize(conn, 4<<10)
	silence := time.AfterFunc(maxSilence, func() { conn.Close() }) //nolint:errcheck // likewise
	defer silence.Stop()
	err := c.open(s, reader)
	if err == nil {
		if connected != nil {
			connected()
		}
		var writer sync.WaitGroup
		writer.Go(func() { c.write(s) })
		err = c.read(s, reader, silence)
		c.endSession(s)
		writer.Wait()
	}
	if !c.isServer && errors.Is(err, ErrForged) {
		c.fail(err)
	}
	return err
}

// open exchanges greetings and the first records, and makes s the session in use.
func (c *Conn) open(s *session, reader io.Reader) (err error) {
	c.mu.Lock()
	key, kind := c.key, byte(greetNew)
	if c.established {
		kind = greetResume
	}
	c.mu.Unlock()
	stream := struct {
		io.Reader
		io.Writer
	}{reader, s.conn}
	if c.isServer {
		key, s.send, s.receive, err = receiveGreeting(stream, key)
	} else {
		s.send, s.receive, err = greet(stream, key, kind)
	}
	if err != nil {
		return err
	}
	if !c.isServer {
		if err := c.sendFirst(s); err != nil {
			return err
		}
	}
	first, err := s.receive.read(reader)
	if err != nil {
		return err
	}
	defer first.release()
	if err := c.start(s, key, first); err != nil {
		return err
	}
	if c.isServer {
		return c.sendFirst(s)
	}
	return nil
}

// sendFirst sends the first record.
func (c *Conn) sendFirst(s *session) error {
	c.mu.Lock()
	offset, received := c.acked, c.received
	c.mu.Unlock()
	s.ackSent = received
	_, err := s.conn.Write(s.send.seal(make([]byte, headSize, headSize+macSize), kindData, offset, received))
	return err
}

// start makes s the session in use, instead of another one. first is the first record
// of the other end.
func (c *Conn) start(s *session, key []byte, first record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.isServer && c.key != nil && !bytes.Equal(c.key, key) { // two first connections at once
		return errGreeting
	}
	c.key, c.established = key, true
	if c.session != nil {
		c.session.close()
	}
	c.session = s
	c.consumed.Broadcast() // the reader of an old session
	if err := c.acknowledge(first.acked); err != nil {
		return err
	}
	s.sent = first.acked
	return nil
}

func (s *session) close() {
	close(s.done)
	s.conn.Close() //nolint:errcheck // its errors do not matter any more
}

func (s *session) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// endSession marks s as ended. It has no effect if another session has replaced s.
func (c *Conn) endSession(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == s {
		c.session, c.downSince = nil, time.Now()
		s.close()
	}
}

// acknowledge drops the bytes before offset. The caller holds the lock.
func (c *Conn) acknowledge(offset uint64) error {
	if offset < c.acked || offset > c.acked+uint64(c.unacked.Len()) {
		return ErrForged
	}
	c.unacked.Next(int(offset - c.acked))
	c.acked = offset
	trim(&c.unacked)
	c.writable.Broadcast()
	return nil
}

// trim releases the memory of a large empty buffer.
func trim(b *bytes.Buffer) {
	if b.Len() == 0 && b.Cap() > keptBuffer {
		*b = bytes.Buffer{}
	}
}

// read receives records until the session ends.
func (c *Conn) read(s *session, reader io.Reader, silence *time.Timer) error {
	for {
		rec, err := s.receive.read(reader)
		if err == nil {
			silence.Reset(maxSilence)
			err = c.accept(s, rec)
			rec.release()
		}
		if err != nil {
			return err
		}
	}
}

// accept processes a record. It blocks while too much data waits for the reader.
func (c *Conn) accept(s *session, rec record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.session == s && c.err == nil && c.in.Len() >= Window {
		c.consumed.Wait()
	}
	switch {
	case errors.Is(c.err, net.ErrClosed):
		return nil // until the writer has sent the end
	case c.err != nil:
		return c.err
	case c.session != s:
		return net.ErrClosed // replaced by another session
	case rec.offset != c.received || c.remoteEnded:
		return ErrForged
	}
	if err := c.acknowledge(rec.acked); err != nil {
		return err
	}
	c.in.Write(rec.data)
	c.received += uint64(len(rec.data))
	if rec.kind == kindClose {
		c.remoteEnded = true
	}
	c.readable.Broadcast()
	if c.received-s.ackSent >= ackInterval {
		s.wakeWriter()
	}
	return nil
}

// write sends records until the session ends.
func (c *Conn) write(s *session) {
	ping := time.NewTimer(pingInterval)
	defer ping.Stop()
	idle := false
	for {
		sent, last, err := c.sendNext(s, idle)
		switch {
		case err != nil || last:
			s.conn.Close() //nolint:errcheck // the reader reports the end
			return
		case sent:
			idle = false
			ping.Reset(pingInterval)
			continue
		}
		select {
		case <-s.wake:
		case <-ping.C:
			idle = true
		case <-s.done:
			return
		}
	}
}

// sendNext sends the next record, if there is something to send; ping asks for a record
// in any case. last means that it was the last one.
func (c *Conn) sendNext(s *session, ping bool) (sent, last bool, err error) {
	buffer := buffers.Get().(*[headSize + MaxData + macSize]byte) //nolint:errcheck // all values have this type
	defer buffers.Put(buffer)
	c.mu.Lock()
	if c.session != s { // the next one may have received acknowledgements of what this one has not sent
		c.mu.Unlock()
		return false, true, nil
	}
	data := c.unacked.Bytes()[s.sent-c.acked:]
	n := copy(buffer[headSize:headSize+MaxData], data)
	last = errors.Is(c.err, net.ErrClosed) && n == len(data)
	if n == 0 && !ping && !last && c.received-s.ackSent < ackInterval {
		c.mu.Unlock()
		return false, false, nil
	}
	kind, offset, received := byte(kindData), s.sent, c.received
	if last {
		kind = kindClose
	}
	s.sent += uint64(n)
	s.ackSent = received
	c.mu.Unlock()
	_, err = s.conn.Write(s.send.seal(buffer[:headSize+n], kind, offset, received))
	return true, last, err
}

// Read reads what the other end has written. It returns io.EOF after the other end has
// closed the link.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.in.Len() == 0 {
		switch {
		case c.err != nil:
			return 0, c.err
		case c.remoteEnded:
			return 0, io.EOF
		}
		c.readable.Wait()
	}
	wasFull := c.in.Len() >= Window
	n, _ := c.in.Read(p) // it has data
	trim(&c.in)
	if wasFull {
		c.consumed.Broadcast()
	}
	return n, nil
}

// Write queues p for the other end. It blocks while too much is unacknowledged.
func (c *Conn) Write(p []byte) (written int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		for c.unacked.Len() >= Window && c.err == nil {
			c.writable.Wait()
		}
		if c.err != nil {
			return written, c.err
		}
		n := min(len(p), Window-c.unacked.Len())
		c.unacked.Write(p[:n])
		p, written = p[n:], written+n
		if c.session != nil {
			c.session.wakeWriter()
		}
	}
	return written, nil
}

// Close ends the link. The other end learns of it after what was written, if there is a
// connection; Close does not wait for that. Read and Write then return net.ErrClosed.
func (c *Conn) Close() error {
	c.fail(net.ErrClosed)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.session; s != nil {
		s.wakeWriter()
		time.AfterFunc(closeTimeout, func() { s.conn.Close() }) //nolint:errcheck // its errors do not matter any more
	}
	return nil
}

// fail ends the link with a reason, which Read and Write return.
func (c *Conn) fail(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = reason
	if s := c.session; s != nil && !errors.Is(reason, net.ErrClosed) {
		c.session = nil
		s.close()
	}
	c.readable.Broadcast()
	c.writable.Broadcast()
	c.consumed.Broadcast()
}

// Down returns how long the link has had no connection; 0 if it has one.
func (c *Conn) Down() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil {
		return 0
	}
	return time.Since(c.downSince)
}
