package server

import (
	"context"

	"github.com/minibench/mini/env/helper/sockets"
)

// switchToSocket moves the connection to the client's socket. If that fails, the
// connection stays on the first stream.
func (s *server) switchToSocket(ctx context.Context, path string) {
	if path == "" {
		return
	}
	conn, err := sockets.Connect(path)
	if err != nil {
		return
	}
	s.out.redirect(conn)
	go s.receive(ctx, conn)
}
