package docker

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// leash ties a connection to a context until somebody has taken it over. It
// travels in that context: only the dialer ever sees the connection before the
// engine has answered.
type leash struct {
	mu     sync.Mutex
	stop   func() bool // nil before the connection is there
	undone bool
}

type leashKey struct{}

// hold closes the connection at the end of ctx.
func (l *leash) hold(ctx context.Context, conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.undone {
		l.stop = context.AfterFunc(ctx, func() { _ = conn.Close() }) // who reads from it meets the error
	}
}

// undo lets the connection outlive the context.
func (l *leash) undo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undone = true
	if l.stop != nil {
		l.stop()
	}
}

// leashed has the connections of a client heed leashes, and says whether it can: with TLS it does
// not ask its transport for connections that are handed over.
func leashed(transport *http.Transport) bool {
	if transport == nil || transport.DialContext == nil || transport.TLSClientConfig != nil {
		return false
	}
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if l, ok := ctx.Value(leashKey{}).(*leash); ok && err == nil {
			l.hold(ctx, conn)
		}
		return conn, err
	}
	return true
}
