package fake

import (
	"context"
	"net"
	"sync"
)

// Memory is a net.Listener whose connections stay in the process, and their
// dialer. Whoever waits on one waits as on a channel, so that the clock of
// testing/synctest runs on.
//
//	l := fake.NewMemory()
//	go server.Serve(l)
//	client := &http.Client{Transport: &http.Transport{DialContext: l.DialContext}}
type Memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*Memory)(nil)

// NewMemory returns a listener for URLs such as http://fake/v1: the name of the
// host does not matter.
func NewMemory() *Memory {
	return &Memory{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (m *Memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (m *Memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// Addr implements net.Listener.
func (m *Memory) Addr() net.Addr { return memoryAddr{} }

// DialContext is for http.Transport; the address is not used.
func (m *Memory) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
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
