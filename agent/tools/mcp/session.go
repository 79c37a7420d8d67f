package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocolVersion is the requested protocol version. Later versions have no
// handshake; a server that does not know them may not answer the first request.
const protocolVersion = "2025-11-25"

// maxFrame bounds a message of a server, in bytes.
const maxFrame = 8 << 20

// session is one connection to a server.
type session struct {
	client      *sdk.ClientSession
	beforeClose func()        // stops the transport, before the client is closed
	afterClose  func()        // releases resources, after the client is closed
	lastStderr  func() string // the end of a program's standard error; may be nil
}

// openSession opens a session with the configured command or URL.
func (s *Server) openSession(ctx context.Context) (*session, error) {
	if len(s.config.Command) > 0 {
		return s.openStdio(ctx)
	}
	return s.openHTTP(ctx)
}

// handshake connects a client over a transport.
func (s *Server) handshake(ctx context.Context, t sdk.Transport, l *session) (*session, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "mini", Version: s.config.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // servers may not send requests to mini
	})
	session, err := c.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if err != nil {
		err = l.explain(fmt.Errorf("connect: %w", err))
		l.close()
		return nil, err
	}
	l.client = session
	return l, nil
}

// explain adds the end of a program's standard error to an error.
func (l *session) explain(err error) error {
	if l.lastStderr == nil {
		return err
	}
	if text := l.lastStderr(); text != "" {
		return fmt.Errorf("%w; standard error ends with: %s", err, text)
	}
	return err
}

func (l *session) close() {
	if l.beforeClose != nil {
		l.beforeClose()
	}
	if l.client != nil {
		l.client.Close() //nolint:errcheck // the session is discarded
	}
	if l.afterClose != nil {
		l.afterClose()
	}
}
