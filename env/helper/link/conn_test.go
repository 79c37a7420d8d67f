package link

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cutConn is a connection that breaks after a number of bytes read or written.
type cutConn struct {
	net.Conn
	mu   sync.Mutex
	left int
}

func (c *cutConn) spend(n int) (allowed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	allowed = min(n, c.left)
	c.left -= allowed
	return allowed
}

func (c *cutConn) Write(p []byte) (int, error) {
	allowed := c.spend(len(p))
	n, err := c.Conn.Write(p[:allowed])
	if allowed < len(p) && err == nil {
		_ = c.Close()
		err = io.ErrClosedPipe
	}
	return n, err
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if allowed := c.spend(n); allowed < n {
		_ = c.Close()
		return allowed, io.ErrUnexpectedEOF
	}
	return n, err
}

// socketPair returns the ends of a connection with buffers of the kernel.
func socketPair(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	accepted := make(chan net.Conn)
	go func() { conn, _ := l.Accept(); accepted <- conn }()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	return client, <-accepted
}

// connect runs connections between the two ends, one after the other, until the client
// has ended. change may wrap the client's side.
func connect(t testing.TB, client, server *Conn, change func(net.Conn) net.Conn) (wait func() error) {
	t.Helper()
	var workers sync.WaitGroup
	var last error
	workers.Go(func() {
		var servers sync.WaitGroup
		for client.alive() {
			c, s := socketPair(t)
			servers.Go(func() { _ = server.Run(s, nil) })
			last = client.Run(change(c), nil)
		}
		servers.Wait()
	})
	return func() error { workers.Wait(); return last }
}

func (c *Conn) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil
}

// TestBreaks: both streams arrive complete although the connections break at arbitrary
// bytes, also within greetings and records.
func TestBreaks(t *testing.T) {
	for _, size := range []int{0, 1, 100_000, 8 << 20} {
		client, server := NewClient(NewKey()), NewServer()
		random := rand.New(rand.NewPCG(1, uint64(size)))
		breaks := 0
		wait := connect(t, client, server, func(c net.Conn) net.Conn {
			breaks++
			return &cutConn{Conn: c, left: random.IntN(1000) + random.IntN(min(5*size+1, 1<<20))}
		})
		sum := func(seed uint64) []byte {
			b := make([]byte, size)
			for i, r := 0, rand.New(rand.NewPCG(seed, seed)); i < len(b); i++ {
				b[i] = byte(r.Uint32())
			}
			return b
		}
		up, down := sum(1), sum(2)
		var workers sync.WaitGroup
		for _, w := range []struct {
			conn *Conn
			data []byte
		}{{client, up}, {server, down}} {
			workers.Go(func() {
				for data := w.data; len(data) > 0; {
					n := min(len(data), 70_000)
					if _, err := w.conn.Write(data[:n]); err != nil {
						t.Error(err)
						return
					}
					data = data[n:]
				}
			})
		}
		for _, r := range []struct {
			conn *Conn
			want []byte
		}{{server, up}, {client, down}} {
			workers.Go(func() {
				got := make([]byte, size)
				if _, err := io.ReadFull(r.conn, got); err != nil || sha256.Sum256(got) != sha256.Sum256(r.want) {
					t.Errorf("size %d: the bytes differ, %v", size, err)
				}
			})
		}
		workers.Wait()
		_ = client.Close()
		_ = wait()
		t.Logf("%d bytes each way: %d connections", size, breaks)
		if size > 1<<20 && breaks < 5 {
			t.Errorf("only %d connections", breaks)
		}
	}
}

// TestClose: the other end reads what was written before, then io.EOF.
func TestClose(t *testing.T) {
	client, server := NewClient(NewKey()), NewServer()
	wait := connect(t, client, server, func(c net.Conn) net.Conn { return c })
	_, _ = client.Write([]byte("last words"))
	_, err := io.ReadFull(server, make([]byte, 4))
	require.NoError(t, err)
	_ = client.Close()
	if rest, err := io.ReadAll(server); err != nil || string(rest) != " words" {
		t.Errorf("read %q, %v", rest, err)
	}
	_ = wait()
	_, err = client.Write([]byte("x"))
	assert.ErrorIs(t, err, net.ErrClosed, "write after Close")
}

// TestForged: a process that changes, adds or repeats bytes of an established connection ends
// the link of the client with ErrForged, and its data is not delivered.
func TestForged(t *testing.T) {
	for name, tamper := range map[string]func(answer, first, data []byte) []byte{
		"changed": func(_, _, data []byte) []byte { data[headSize] ^= 1; return data },
		"length":  func(_, _, data []byte) []byte { data[0] = 0xff; return data },
		"offset":  func(_, _, data []byte) []byte { data[12] = 1; return data },
		"repeated": func(_, first, data []byte) []byte {
			return append(bytes.Clone(first), data...)
		},
		"invented": func(_, _, data []byte) []byte {
			return append(make([]byte, headSize+macSize), data...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := NewClient(NewKey()), NewServer()
			c, middle := socketPair(t)
			behind, s := socketPair(t)
			var workers sync.WaitGroup
			workers.Go(func() { _ = server.Run(s, nil) })
			workers.Go(func() { _, _ = io.Copy(behind, middle); _ = behind.Close() })
			workers.Go(func() {
				defer func() { _ = middle.Close() }()
				answer, first := make([]byte, answerSize), make([]byte, headSize+macSize)
				data := make([]byte, headSize+4+macSize)
				_, _ = io.ReadFull(behind, answer)
				_, _ = middle.Write(answer)
				_, _ = io.ReadFull(behind, first)
				_, _ = middle.Write(first)
				_, _ = server.Write([]byte("true"))
				_, _ = io.ReadFull(behind, data)
				_, _ = middle.Write(tamper(answer, first, data))
				_, _ = io.Copy(io.Discard, behind)
			})
			err := client.Run(c, nil)
			assert.ErrorIs(t, err, ErrForged, "Run")
			if n, err := client.Read(make([]byte, 10)); n > 0 || !errors.Is(err, ErrForged) {
				t.Errorf("Read: %d bytes, %v", n, err)
			}
			_ = server.Close()
			workers.Wait()
		})
	}
}

// TestWrongKey: a server with a key takes no other client, and stays with its own.
func TestWrongKey(t *testing.T) {
	client, server := NewClient(NewKey()), NewServer()
	wait := connect(t, client, server, func(c net.Conn) net.Conn { return c })
	_, _ = client.Write([]byte("a"))
	_, _ = io.ReadFull(server, make([]byte, 1))
	for _, established := range []bool{false, true} {
		c, s := socketPair(t)
		other := NewClient(NewKey())
		other.established = established
		var worker sync.WaitGroup
		worker.Go(func() {
			assert.Error(t, server.Run(s, nil), "the server served another client")
		})
		if err := other.Run(c, nil); err == nil || errors.Is(err, ErrForged) {
			t.Errorf("other client: %v", err)
		}
		worker.Wait()
	}
	_, _ = client.Write([]byte("b"))
	if b := make([]byte, 1); true {
		if _, err := io.ReadFull(server, b); err != nil || b[0] != 'b' {
			t.Errorf("the client's stream: %q, %v", b, err)
		}
	}
	_ = client.Close()
	_ = wait()
}

// TestSilence: an idle connection carries a record every 20 seconds in each direction,
// and one that delivers nothing for a minute is given up.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := NewClient(NewKey()), NewServer()
		c, s := net.Pipe()
		silent := &muteConn{Conn: c}
		ended := make(chan error, 2)
		go func() { ended <- server.Run(s, nil) }()
		go func() { ended <- client.Run(silent, nil) }()
		time.Sleep(10 * time.Minute)
		if client.Down() != 0 || server.Down() != 0 {
			t.Fatal("an idle connection was given up")
		}
		silent.mute()
		time.Sleep(maxSilence + pingInterval)
		if client.Down() == 0 {
			t.Error("a silent connection is still in use")
		}
		for range 2 {
			assert.Error(t, <-ended, "a connection ended without a reason")
		}
	})
}

// muteConn is a connection that can stop delivering without ending.
type muteConn struct {
	net.Conn
	mu     sync.Mutex
	silent bool
}

func (c *muteConn) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = true
}

func (c *muteConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		c.mu.Lock()
		silent := c.silent
		c.mu.Unlock()
		if err != nil || !silent {
			return n, err
		}
	}
}

// FuzzServer: whatever arrives on a connection, a server neither panics nor delivers data.
func FuzzServer(f *testing.F) {
	f.Add([]byte("minilink"))
	f.Add(append(append([]byte(magic), greetNew), make([]byte, 500)...))
	f.Fuzz(func(t *testing.T, input []byte) {
		server := NewServer()
		c, s := net.Pipe()
		var worker sync.WaitGroup
		worker.Go(func() { _ = server.Run(s, nil) })
		go func() { _, _ = io.Copy(io.Discard, c) }()
		_, _ = c.Write(input)
		_ = c.Close()
		worker.Wait()
		if server.in.Len() > 0 {
			t.Error("data was delivered")
		}
	})
}
