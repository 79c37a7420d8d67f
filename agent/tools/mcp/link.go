package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocolVersion is what servers are asked for first: those of today begin with
// a handshake. Later ones have none, and a server that does not know that may leave
// the first request without an answer.
const protocolVersion = "2025-11-25"

// maxFrame bounds a message of a server, in bytes.
const maxFrame = 8 << 20

// link is one session with a server.
type link struct {
	session *sdk.ClientSession
	end     func()        // ends what is below it, before the session is closed
	after   func()        // and after
	last    func() string // what a program said last on its standard error
}

// dial begins a session, as the configuration says.
func (s *Server) dial(ctx context.Context) (*link, error) {
	if len(s.config.Command) > 0 {
		return s.start(ctx)
	}
	return s.visit(ctx)
}

// handshake makes a session of a transport.
func (s *Server) handshake(ctx context.Context, t sdk.Transport, l *link) (*link, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "mini", Version: s.config.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // servers may ask nothing of mini
	})
	session, err := c.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if err != nil {
		err = l.explain(fmt.Errorf("connect: %w", err))
		l.close()
		return nil, err
	}
	l.session = session
	return l, nil
}

// explain adds what a program said last to an error of its session.
func (l *link) explain(err error) error {
	if l.last == nil {
		return err
	}
	if text := l.last(); text != "" {
		return fmt.Errorf("%w; it said last: %s", err, text)
	}
	return err
}

// ping asks whether anybody is there. Any answer will do.
func (l *link) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	err := l.session.Ping(ctx, nil)
	if _, answered := asWire(err); answered {
		return nil
	}
	return err
}

func (l *link) close() {
	if l.end != nil {
		l.end()
	}
	if l.session != nil {
		l.session.Close() //nolint:errcheck // there is nobody to tell
	}
	if l.after != nil {
		l.after()
	}
}
