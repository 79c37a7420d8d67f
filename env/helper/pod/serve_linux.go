package pod

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/link"
	"github.com/minibench/mini/env/helper/server"
	"github.com/minibench/mini/env/helper/sockets"
)

const (
	// socketName is abstract, so it belongs to the network namespace of the pod.
	socketName = "@mini-relay"
	// maxRelays is the maximum number of connected relays. Commands can start relays
	// too; without the key they hold a place until greetTimeout.
	maxRelays    = 32
	greetTimeout = 10 * time.Second
)

var errNoClient = errors.New("no client connected")

// Serve serves one client until it ends the conversation, or until its lease expires.
// hash is the SHA-256 of the helper's binary, in hex.
func Serve(ctx context.Context, hash string) error {
	listener, err := sockets.Listen(socketName)
	if err != nil {
		return err
	}
	if err := linkTool(filepath.Dir(os.Args[0])); err != nil {
		return err
	}
	conn := link.NewServer()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Later, the client's lease limits the time without a connection.
	first := time.AfterFunc(FirstConnection, func() { cancel(errNoClient) })
	defer first.Stop()
	go accept(listener, conn, func() { first.Stop() })
	return server.Serve(ctx, server.Config{In: conn, Out: conn, Hash: hash, Environ: withoutCluster(os.Environ())})
}

// linkTool makes the helper available as mini-tool in a directory below its own.
func linkTool(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, ToolDir), 0o755); err != nil { //nolint:gosec // commands run as any user
		return err
	}
	return os.Symlink("../"+Binary, filepath.Join(dir, ToolDir, env.ToolProgram))
}

// withoutCluster removes the variables with the addresses of the cluster's services,
// which are no part of the image.
func withoutCluster(environ []string) []string {
	return slices.DeleteFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, "KUBERNETES_") })
}

// accept runs connections of conn over relays, until the program exits.
func accept(listener *os.File, conn *link.Conn, connected func()) {
	slots := make(chan struct{}, maxRelays)
	for {
		control, err := sockets.Accept(listener)
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		default:
			control.Close() //nolint:errcheck // nothing was written
			continue
		}
		go func() {
			defer func() { <-slots }()
			s, err := receiveStreams(control)
			if err != nil {
				control.Close() //nolint:errcheck // likewise
				return
			}
			go s.closeWithRelay()
			greeting := time.AfterFunc(greetTimeout, func() { s.Close() }) //nolint:errcheck // ends the connection
			defer greeting.Stop()
			conn.Run(s, func() { greeting.Stop(); connected() }) //nolint:errcheck // the client connects again
		}()
	}
}

// streams are the standard streams of a relay.
type streams struct{ control, in, out *os.File }

func receiveStreams(control *os.File) (*streams, error) {
	peer, err := sockets.Peer(control)
	if err != nil {
		return nil, err
	}
	if peer.Pid <= 0 {
		return nil, errors.New("the process is not in this pod")
	}
	if err := control.SetDeadline(time.Now().Add(greetTimeout)); err != nil {
		return nil, err
	}
	files, err := sockets.ReceiveFiles(control, 2)
	if err != nil {
		return nil, err
	}
	if err := control.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return &streams{control, files[0], files[1]}, nil
}

// closeWithRelay closes the streams when the relay exits.
func (s *streams) closeWithRelay() {
	s.control.Read(make([]byte, 1)) //nolint:errcheck // a relay sends nothing more
	s.Close()                       //nolint:errcheck // nothing is written any more
}

func (s *streams) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *streams) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close closes the streams; the relay then exits.
func (s *streams) Close() error {
	return errors.Join(s.in.Close(), s.out.Close(), s.control.Close())
}
