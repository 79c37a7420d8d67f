//go:build kubernetes

package kubetest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// acceptWebSocket accepts a connection of the protocol v5.channel.k8s.io: the first
// byte of a message is the number of the stream; a message 255, N closes stream N.
//
// It does not use k8s.io/streaming/pkg/httpstream/wsstream, which closes a connection
// without waiting for the client, so that the end of the output may be lost.
func (c *Cluster) acceptWebSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, o execOptions) *session {
	upgrader := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
	if !slices.Contains(websocket.Subprotocols(r), remotecommand.StreamProtocolV5Name) {
		writeError(w, apierrors.NewBadRequest("the only supported protocol is "+remotecommand.StreamProtocolV5Name))
		return nil
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	stdin, stdinWriter := io.Pipe()
	if !o.stdin {
		_ = stdinWriter.Close() // never fails
	}
	c.wg.Go(func() {
		defer cancel()
		defer stdinWriter.Close() //nolint:errcheck // never fails
		for {
			_, message, err := conn.ReadMessage()
			if err != nil {
				return
			}
			switch {
			case len(message) == 2 && message[0] == remotecommand.StreamClose && message[1] == remotecommand.StreamStdIn:
				_ = stdinWriter.Close() // never fails
			case len(message) > 0 && message[0] == remotecommand.StreamStdIn:
				_, _ = stdinWriter.Write(message[1:]) // fails after the end of stdin
			}
		}
	})
	var mu sync.Mutex
	stream := func(number byte, requested bool) io.Writer {
		if !requested {
			return io.Discard
		}
		return writerFunc(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return len(b), conn.WriteMessage(websocket.BinaryMessage, append([]byte{number}, b...))
		})
	}
	status := stream(remotecommand.StreamErr, true)
	return &session{
		ended:  ctx.Done(),
		stdin:  stdin,
		stdout: stream(remotecommand.StreamStdOut, o.stdout),
		stderr: stream(remotecommand.StreamStdErr, o.stderr),
		finish: func(b []byte) {
			_ = stdin.Close()      // never fails; what is not read would block the reader
			_, _ = status.Write(b) // the client may be gone
			deadline := time.Now().Add(finishTimeout)
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), deadline)
			_ = conn.SetReadDeadline(deadline)
			<-ctx.Done() // the client answers, then closes the connection
		},
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
