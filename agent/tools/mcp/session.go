package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocolVersion is the requested protocol version. Later versions have no
// handshake, and a server that does not know them may not answer the first
// request.
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

// handshake connects a client over a transport and returns sess with that
// client.
func (s *Server) handshake(ctx context.Context, t sdk.Transport, sess *session) (*session, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "mini", Version: s.config.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // mini offers no capabilities: servers may not send requests to it
	})
	clientSession, err := client.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if err != nil {
		err = sess.explain(fmt.Errorf("connect: %w", err))
		sess.close()
		return nil, err
	}
	sess.client = clientSession
	return sess, nil
}

// explain adds the end of a program's standard error to an error.
func (s *session) explain(err error) error {
	if s.lastStderr == nil {
		return err
	}
	if text := s.lastStderr(); text != "" {
		return fmt.Errorf("%w; standard error ends with: %s", err, text)
	}
	return err
}

func (s *session) close() {
	if s.beforeClose != nil {
		s.beforeClose()
	}
	if s.client != nil {
		s.client.Close() //nolint:errcheck // the session is discarded
	}
	if s.afterClose != nil {
		s.afterClose()
	}
}
