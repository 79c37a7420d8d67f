package docker

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/client"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// muteTransport is an http.RoundTripper for an engine that answers no request, except
// with the headers of streams.
func muteTransport(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/images/create") || strings.HasSuffix(r.URL.Path, "/events") {
		body, w := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = w.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: http.StatusOK, Body: body, Header: http.Header{}}, nil
	}
	return nil, silent(r.Context())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newMuteEngine returns an engine that answers no request. Its heartbeat calls ping.
func newMuteEngine(t *testing.T, ping func(context.Context) error) *Engine {
	t.Helper()
	h := newHeartbeat(heartbeatTimeout, ping, func(context.Context) {})
	var transport http.Transport
	transport.RegisterProtocol("http", roundTripper(muteTransport))
	cli, err := client.NewClientWithOpts(client.WithHTTPClient(&http.Client{Transport: &timeoutTransport{next: &transport, heartbeat: h}}), client.WithVersion("1.44"))
	require.NoError(t, err)
	return &Engine{api: cli, heartbeat: h, cfg: EngineConfig{PullTimeout: 5 * time.Minute}, openContainers: map[*Container]struct{}{}}
}

func TestSilentEngineInMidPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newMuteEngine(t, silent)
		started := time.Now()
		err := e.pull(t.Context(), "a", "", "")
		lost, ok := errors.AsType[*env.Error](err)
		if took := time.Since(started); !ok || lost.Status != env.DaemonUnavailable || took > 5*time.Second {
			t.Errorf("after %s: %v, want DaemonUnavailable within 5 s", took, err)
		}
		e.heartbeat.close()
	})
}

// TestPullTimeout: a registry may be silent for longer than an engine.
func TestPullTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newMuteEngine(t, func(context.Context) error { return nil })
		started := time.Now()
		err := e.pull(t.Context(), "a", "", "")
		lost, ok := errors.AsType[*env.Error](err)
		if took := time.Since(started); !ok || lost.Status != env.PullFailed || took != 5*time.Minute {
			t.Errorf("after %s: %v, want PullFailed after 5 m", took, err)
		}
		e.heartbeat.close()
	})
}

// TestLossErrorInTime: mini waits for the reason of a loss for a limited time, even if the
// engine does not report it.
func TestLossErrorInTime(t *testing.T) {
	for name, tt := range map[string]struct {
		code *int64 // exit code reported by the engine; nil if it reports none
		why  error
		want env.Status
	}{
		"the engine says nothing":    {nil, helper.ErrDisconnected, env.ContainerDied},
		"it was killed, and no more": {ptr[int64](exitKilled), helper.ErrDisconnected, env.DaemonUnavailable},
		"it ended by itself":         {ptr[int64](1), helper.ErrDisconnected, env.ContainerDied},
		"the helper broke the rules": {nil, helper.ErrFrame, env.ProtocolViolation},
		"the reason is known":        {nil, &env.Error{Status: env.ContainerPaused, Err: helper.ErrDisconnected}, env.ContainerPaused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newMuteEngine(t, func(context.Context) error { return nil })
				c := &Container{
					engine: e, name: "mini-a", created: time.Now(),
					stream: &attachment{stderr: &helper.StderrBuffer{}}, exit: &exitWatcher{done: make(chan struct{})},
				}
				if tt.code != nil {
					time.AfterFunc(exitWait-time.Millisecond, func() {
						c.exit.code = *tt.code
						close(c.exit.done)
					})
				}
				started := time.Now()
				lost, ok := errors.AsType[*env.Error](c.recordLoss(t.Context(), tt.why))
				if took := time.Since(started); !ok || lost.Status != tt.want || took > exitWait+eventsWait {
					t.Errorf("after %s: %v, want %s", took, lost, tt.want)
				}
				e.heartbeat.close()
			})
		})
	}
}

func ptr[T any](v T) *T { return &v }

// TestUnansweredRequest: a request ends with the heartbeat, or after requestTimeout.
func TestUnansweredRequest(t *testing.T) {
	for name, tt := range map[string]struct {
		ping    func(context.Context) error
		waitFor time.Duration
		want    error
	}{
		"frozen":           {silent, 5 * time.Second, errNoHeartbeat},
		"alive, and stuck": {func(context.Context) error { return nil }, requestTimeout, errNoResponse},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newMuteEngine(t, tt.ping)
				started := time.Now()
				_, err := e.api.Info(t.Context())
				if took := time.Since(started); !errors.Is(err, tt.want) || took > tt.waitFor {
					t.Errorf("after %s: %v, want %v within %s", took, err, tt.want, tt.waitFor)
				}
				assert.Equal(t, env.DaemonUnavailable, status(engineError(t.Context(), env.StartFailed, "ask", err)))
				e.heartbeat.close()
			})
		})
	}
}

func status(err error) env.Status {
	if e, ok := errors.AsType[*env.Error](err); ok {
		return e.Status
	}
	return ""
}

// TestLateAttach: a connection that arrives after its request ended is closed.
func TestLateAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newMuteEngine(t, silent)
		clientConn, engineConn := net.Pipe()
		_, err := e.dial(t.Context(), func(context.Context) (types.HijackedResponse, error) {
			time.Sleep(time.Minute)
			return types.NewHijackedResponse(clientConn, ""), nil
		})
		assert.ErrorIs(t, err, errNoHeartbeat)
		_, err = engineConn.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF, "the connection ended")
		e.heartbeat.close()
	})
}

// TestHintOfAnotherArchitecture: only the engine's message shows that an image has
// another architecture.
func TestHintOfAnotherArchitecture(t *testing.T) {
	err := engineError(t.Context(), env.StartFailed, "start", errors.New("exec /.mini/h: exec format error"))
	if e, ok := errors.AsType[*env.Error](err); !ok || !strings.Contains(e.Hint, "another architecture") {
		t.Errorf("%v", err)
	}
}

// TestEngineBehindTLS: the Docker client configures the transport differently with TLS.
func TestEngineBehindTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.44")
		_, _ = io.WriteString(w, `{"NCPU":7}`)
	}))
	defer s.Close()
	dir := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: s.Certificate().Raw}, "cert.pem": {Type: "CERTIFICATE", Bytes: s.Certificate().Raw},
		"key.pem": {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	t.Setenv("DOCKER_CERT_PATH", dir)
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	e, err := Open(t.Context(), EngineConfig{Host: "tcp://" + s.Listener.Addr().String()})
	require.NoError(t, err)
	if d, err := e.Describe(t.Context()); err != nil || d.CPUs != 7 {
		t.Errorf("%+v, %v", d, err)
	}
	assert.NoError(t, e.Close())
}

// silent is the ping of an engine that accepts connections but does not answer.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestHeartbeat(t *testing.T) {
	for name, tt := range map[string]struct {
		ping  func(context.Context) error
		bytes time.Duration // interval at which a container sends data; 0 means never
		lost  bool
	}{
		"frozen":                         {ping: silent, lost: true},
		"out of reach":                   {ping: func(context.Context) error { return syscall.EHOSTUNREACH }, lost: true},
		"alive":                          {ping: func(context.Context) error { return nil }},
		"slow, but containers send data": {ping: silent, bytes: time.Second},
		"its socket was removed":         {ping: func(context.Context) error { return fmt.Errorf("dial: %w", syscall.ENOENT) }},
		"refuses new connections":        {ping: func(context.Context) error { return fmt.Errorf("dial: %w", syscall.ECONNREFUSED) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeartbeat(4*time.Second, tt.ping, func(context.Context) {})
				lost := make(chan error, 1)
				started := time.Now()
				leave := h.watch(t.Context(), func(err error) { lost <- err })
				var data <-chan time.Time
				if tt.bytes > 0 {
					tick := time.NewTicker(tt.bytes)
					defer tick.Stop()
					data = tick.C
				}
				wait := time.After(time.Minute)
				for waiting := true; waiting; {
					select {
					case <-data:
						h.markAlive()
					case err := <-lost:
						waiting = false
						e, ok := errors.AsType[*env.Error](err)
						if took := time.Since(started); !tt.lost || !ok || e.Status != env.DaemonUnavailable || took > 5*time.Second {
							t.Errorf("after %s: lost: %v", took, err)
						}
					case <-wait:
						waiting = false
						if tt.lost {
							t.Error("not lost after a minute")
						}
					}
				}
				leave()
				h.close()
			})
		})
	}
}

// TestHeartbeatOfShortWaits: most commands end before the first interval, and the
// engine is not pinged.
func TestHeartbeatOfShortWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pings := 0
		h := newHeartbeat(4*time.Second, func(context.Context) error { pings++; return nil }, func(context.Context) {})
		for range 1000 {
			leave := h.watch(t.Context(), func(err error) { t.Errorf("lost: %v", err) })
			time.Sleep(heartbeatInterval / 2)
			leave()
		}
		h.close()
		assert.Equal(t, 0, pings, "pings")
	})
}

// TestPause: a pause starts once, and counts as recent until resumeGrace after its end.
func TestPause(t *testing.T) {
	var p pauseState
	now := time.Now()
	for _, tt := range []struct {
		after           time.Duration
		paused          bool
		lasted          time.Duration
		started, recent bool
	}{
		{0, false, 0, false, false},
		{time.Second, true, 0, true, true},
		{time.Minute, true, time.Minute, false, true},
		{time.Second, false, 0, false, true},
		{resumeGrace, false, 0, false, false},
		{time.Hour, true, 0, true, true},
	} {
		now = now.Add(tt.after)
		lasted, started := p.update(tt.paused, now)
		if recent := p.wasPausedRecently(now); lasted != tt.lasted || started != tt.started || recent != tt.recent {
			t.Errorf("%+v: lasted %s, news %v, recent %v", tt, lasted, started, recent)
		}
	}
}
