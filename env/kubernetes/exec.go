//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	gorilla "github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes/scheme"
	execclient "k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/minibench/mini/env/helper"
)

// execStream is the standard input and output of a process in a pod. Close ends it; the
// process sees the end of its input, and is not killed.
type execStream interface {
	io.ReadWriteCloser
	// failure returns, after the end of Read, the error that the API server reported,
	// with what the process wrote to standard error. A nil error proves nothing: the
	// stream may have been lost.
	failure() error
}

// openExec starts a process in a pod, with the exec subresource. It uses WebSocket, and
// SPDY where servers or proxies do not support that. The stream does not end with ctx.
func (c *Cluster) openExec(ctx context.Context, name string, command ...string) (execStream, error) {
	address := c.exec.Post().Resource("pods").Namespace(c.namespace).Name(name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: containerName, Command: command, Stdin: true, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec).URL()
	if c.spdyOnly.Load() {
		return c.openSPDY(ctx, address)
	}
	socket, err := c.openSocket(ctx, address)
	if err == nil || !isUnsupported(err) {
		return socket, err
	}
	stream, spdyErr := c.openSPDY(ctx, address)
	if spdyErr == nil {
		c.spdyOnly.Store(true)
	}
	return stream, spdyErr
}

// isUnsupported reports whether another protocol may work. Before Kubernetes 1.35,
// WebSocket and SPDY need different rights.
func isUnsupported(err error) bool {
	if _, refused := errors.AsType[*apierrors.StatusError](err); refused {
		return apierrors.IsForbidden(err)
	}
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

// Channels of the protocol v5.channel.k8s.io: the first byte of each message. See
// https://kubernetes.io/docs/reference/using-api/websocket-protocol/ and
// k8s.io/apimachinery/pkg/util/remotecommand.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
	channelError  = 3
)

// socketStream is an execStream over a WebSocket. It does without the buffers and
// goroutines of client-go's executor, because a process may have hundreds.
type socketStream struct {
	conn    *gorilla.Conn
	message io.Reader // the rest of the current message of standard output
	writing sync.Mutex
	stderr  helper.StderrBuffer
	err     error
}

func (c *Cluster) openSocket(ctx context.Context, address *url.URL) (execStream, error) {
	transport, holder, err := websocket.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, greetTimeout) // of the handshake; the stream outlives ctx
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	conn, err := websocket.Negotiate(transport, holder, request, remotecommand.StreamProtocolV5Name)
	if err != nil {
		if failed, ok := errors.AsType[*httpstream.UpgradeFailureError](err); ok && errors.As(failed.Cause, new(*apierrors.StatusError)) {
			err = failed.Cause
		}
		return nil, err
	}
	return &socketStream{conn: conn}, nil
}

// Read reads standard output.
func (s *socketStream) Read(p []byte) (int, error) {
	for {
		if s.message != nil {
			n, err := s.message.Read(p)
			if errors.Is(err, io.EOF) {
				s.message, err = nil, nil
			}
			if n > 0 || err != nil {
				return n, err
			}
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
}

// next reads messages up to the next one of standard output.
func (s *socketStream) next() error {
	for {
		_, message, err := s.conn.NextReader()
		if err != nil {
			if gorilla.IsCloseError(err, gorilla.CloseNormalClosure) {
				return io.EOF
			}
			return err
		}
		var channel [1]byte
		if _, err := io.ReadFull(message, channel[:]); err != nil {
			return helper.UnexpectedEOF(err)
		}
		switch channel[0] {
		case channelStdout:
			s.message = message
			return nil
		case channelStderr:
			_, err = io.Copy(&s.stderr, message)
		case channelError:
			s.err, err = readStatus(message)
		}
		if err != nil {
			return err
		}
	}
}

// readStatus reads the result of a process.
func readStatus(r io.Reader) (result, err error) {
	var status metav1.Status
	if err := json.NewDecoder(io.LimitReader(r, maxStatus)).Decode(&status); err != nil {
		return nil, fmt.Errorf("read status of exec: %w", err)
	}
	if status.Status == metav1.StatusSuccess {
		return nil, nil
	}
	return errors.New(shorten(status.Message)), nil
}

// maxStatus limits the size of the result of a process, in bytes.
const maxStatus = 64 << 10

// maxMessage is the size of the largest message, in bytes. Larger ones would exceed the
// buffer of the connection and be sent in fragments, which API servers do not join.
const maxMessage = 32 << 10

// Write writes p to standard input.
func (s *socketStream) Write(p []byte) (written int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for len(p) > 0 && err == nil {
		var n int
		n, err = s.writeMessage(p[:min(len(p), maxMessage)])
		p, written = p[n:], written+n
	}
	return written, err
}

func (s *socketStream) writeMessage(p []byte) (int, error) {
	w, err := s.conn.NextWriter(gorilla.BinaryMessage)
	if err != nil {
		return 0, err
	}
	if _, err := w.Write([]byte{channelStdin}); err != nil {
		return 0, err
	}
	n, err := w.Write(p)
	if err != nil {
		return n, err
	}
	return n, w.Close()
}

// Close implements io.Closer.
func (s *socketStream) Close() error { return s.conn.Close() }

func (s *socketStream) failure() error { return withStderr(s.err, &s.stderr) }

func withStderr(err error, stderr *helper.StderrBuffer) error {
	text := stderr.String()
	if text == "" {
		return err
	}
	if err == nil {
		err = errors.New("the process failed")
	}
	return fmt.Errorf("%w: %.500q", err, text)
}

// spdyStream is an execStream over client-go's SPDY executor.
type spdyStream struct {
	*io.PipeReader
	stdin  *io.PipeWriter
	stderr helper.StderrBuffer
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set when done is closed
}

func (c *Cluster) openSPDY(ctx context.Context, address *url.URL) (execStream, error) {
	executor, err := execclient.NewSPDYExecutor(c.config, http.MethodPost, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	input, stdin := io.Pipe()
	stdout, output := io.Pipe()
	s := &spdyStream{PipeReader: stdout, stdin: stdin, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = executor.StreamWithContext(ctx, execclient.StreamOptions{Stdin: input, Stdout: output, Stderr: &s.stderr})
		_ = output.Close() // never fails
		_ = input.Close()  // likewise; ends a blocked Write
	}()
	return s, nil
}

func (s *spdyStream) Write(p []byte) (int, error) { return s.stdin.Write(p) }

// Close implements io.Closer.
func (s *spdyStream) Close() error {
	_ = s.stdin.Close()      // never fails
	_ = s.PipeReader.Close() // likewise
	s.cancel()
	return nil
}

func (s *spdyStream) failure() error {
	<-s.done
	if errors.Is(s.err, context.Canceled) {
		return withStderr(nil, &s.stderr)
	}
	return withStderr(s.err, &s.stderr)
}
