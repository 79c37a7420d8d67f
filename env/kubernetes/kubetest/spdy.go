//go:build kubernetes

package kubetest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// acceptSPDY accepts a connection of the protocol v4.channel.k8s.io, in which the
// client creates one SPDY stream for each stream of the command.
func (c *Cluster) acceptSPDY(ctx context.Context, w http.ResponseWriter, r *http.Request, o execOptions) *session {
	if !httpstream.IsUpgradeRequest(r) {
		writeError(w, apierrors.NewBadRequest("unable to upgrade: missing upgrade headers in request"))
		return nil
	}
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return nil // Handshake has written the response
	}
	type created struct {
		httpstream.Stream
		replied <-chan struct{}
	}
	pending := make(chan created, 8)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
		select {
		case pending <- created{s, replied}:
			return nil
		default:
			return errors.New("too many streams")
		}
	})
	if conn == nil {
		return nil // UpgradeResponse has written the response
	}
	ctx, cancel := context.WithCancel(ctx)
	closed := conn.CloseChan()
	c.wg.Go(func() {
		defer cancel()
		<-closed
	})
	want := []string{v1.StreamTypeError}
	for name, requested := range map[string]bool{
		v1.StreamTypeStdin: o.stdin, v1.StreamTypeStdout: o.stdout, v1.StreamTypeStderr: o.stderr,
	} {
		if requested {
			want = append(want, name)
		}
	}
	streams := map[string]httpstream.Stream{}
	timeout := time.After(finishTimeout)
	for len(streams) < len(want) {
		select {
		case s := <-pending:
			streams[s.Headers().Get(v1.StreamType)] = s
			select {
			case <-s.replied:
			case <-ctx.Done():
			}
		case <-ctx.Done():
			_ = conn.Close() // ctx may have ended with the cluster
			return nil
		case <-timeout:
			_ = conn.Close() // the client is too slow
			return nil
		}
	}
	s := &session{ended: ctx.Done(), stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	if o.stdin {
		s.stdin = streams[v1.StreamTypeStdin]
	}
	if o.stdout {
		s.stdout = streams[v1.StreamTypeStdout]
	}
	if o.stderr {
		s.stderr = streams[v1.StreamTypeStderr]
	}
	s.finish = func(b []byte) {
		_, _ = streams[v1.StreamTypeError].Write(b) // the client may be gone
		for _, stream := range streams {
			_ = stream.Close() // only the side of the server
		}
		select {
		case <-ctx.Done(): // the client has everything
		case <-time.After(finishTimeout):
		}
		_ = conn.Close()
	}
	return s
}
