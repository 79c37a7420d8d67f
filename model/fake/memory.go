package fake

import (
	"context"
	"net"
	"sync"
)

// MemoryListener is a net.Listener with in-memory connections, and their dialer.
// Its connections block on channels, so the fake clock of testing/synctest
// advances.
//
//	l := fake.NewMemoryListener()
//	go server.Serve(l)
//	client := &http.Client{Transport: &http.Transport{DialContext: l.DialContext}}
type MemoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*MemoryListener)(nil)

// NewMemoryListener returns a listener. Clients may use any host, for example
// http://fake/v1.
func NewMemoryListener() *MemoryListener {
	return &MemoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (m *MemoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (m *MemoryListener) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// Addr implements net.Listener.
func (m *MemoryListener) Addr() net.Addr { return memoryAddr{} }

// DialContext is for http.Transport. It ignores the address.
func (m *MemoryListener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.closed:
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type memoryAddr struct{}

// Network implements net.Addr.
func (memoryAddr) Network() string { return "memory" }

// String implements net.Addr.
func (memoryAddr) String() string { return "fake" }
