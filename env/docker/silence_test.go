package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// mute is an engine that takes every request and answers none.
type mute struct {
	api
	removals int
}

func (m *mute) ContainerRemove(ctx context.Context, _ string, _ container.RemoveOptions) error {
	m.removals++
	return silent(ctx)
}

func (*mute) ImagePull(ctx context.Context, _ string, _ image.PullOptions) (io.ReadCloser, error) {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	return r, nil
}

func (*mute) ContainerWait(context.Context, string, container.WaitCondition) (<-chan container.WaitResponse, <-chan error) {
	return nil, nil
}

func (*mute) Events(ctx context.Context, _ events.ListOptions) (<-chan events.Message, <-chan error) {
	failed := make(chan error, 1)
	context.AfterFunc(ctx, func() { failed <- ctx.Err() })
	return nil, failed
}

func (*mute) Close() error { return nil }

// engineOf is an engine that is spoken to through a, and answers questions after
// its health like ask.
func engineOf(a api, ask func(context.Context) error) *Engine {
	p := newPulse(silenceLimit, ask, func(context.Context) {})
	return &Engine{
		api: &bounded{api: a, pulse: p, leashed: true}, pulse: p,
		cfg: EngineConfig{PullTimeout: 5 * time.Minute, PauseLimit: defaultPauseLimit}, open: map[*Container]struct{}{},
	}
}

// However much is owed, a silent engine is asked for one removal, and the rest
// stays owed; one that lives, and is slow, for as many as farewell has room for.
func TestEndWithMuchOwed(t *testing.T) {
	for name, ask := range map[string]func(context.Context) error{
		"frozen": silent,
		"slow":   func(context.Context) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &mute{}
				e := engineOf(m, ask)
				for i := range 64 {
					e.owe(fmt.Sprint("mini-", i))
				}
				begin := time.Now()
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took > farewell || m.removals != 1 || len(e.owed) != 64 {
					t.Errorf("after %s and %d requests %d are owed; want %s at most, one and 64", took, m.removals, len(e.owed), farewell)
				}
			})
		})
	}
}

func TestEngineThatFallsSilentInMidPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engineOf(&mute{}, silent)
		begin := time.Now()
		err := e.pull(t.Context(), "a", "", "")
		lost, ok := errors.AsType[*env.Error](err)
		if took := time.Since(begin); !ok || lost.Status != env.DaemonUnavailable || took > 5*time.Second {
			t.Errorf("after %s: %v, want DaemonUnavailable within 5 s", took, err)
		}
		e.pulse.close()
	})
}

// A registry may be silent for longer than an engine.
func TestPullThatWaitsForItsRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engineOf(&mute{}, func(context.Context) error { return nil })
		begin := time.Now()
		err := e.pull(t.Context(), "a", "", "")
		lost, ok := errors.AsType[*env.Error](err)
		if took := time.Since(begin); !ok || lost.Status != env.PullFailed || took != 5*time.Minute {
			t.Errorf("after %s: %v, want PullFailed after 5 m", took, err)
		}
		e.pulse.close()
	})
}

// Whatever an engine does not say of a lost sandbox, and however long a removal
// takes, the command's end is known within five seconds of the stream's.
func TestLossIsKnownInTime(t *testing.T) {
	for name, tt := range map[string]struct {
		code *int64 // with which the engine says that it ended; nil where it says nothing
		why  error
		want env.Status
	}{
		"the engine says nothing":       {nil, helper.ErrLost, env.ContainerDied},
		"it was killed, and no more":    {ptr[int64](killed), helper.ErrLost, env.DaemonUnavailable},
		"it ended by itself":            {ptr[int64](1), helper.ErrLost, env.ContainerDied},
		"the helper broke the rules":    {nil, helper.ErrFrame, env.ProtocolViolation},
		"somebody said why it was lost": {nil, &env.Error{Status: env.ContainerPaused, Err: helper.ErrLost}, env.ContainerPaused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engineOf(&mute{}, func(context.Context) error { return nil })
				c := &Container{
					engine: e, name: "mini-a", born: time.Now(),
					stream: &attachment{stderr: &helper.Stderr{}}, death: &death{known: make(chan struct{})},
				}
				if tt.code != nil {
					time.AfterFunc(deathWait-time.Millisecond, func() {
						c.death.code = *tt.code
						close(c.death.known)
					})
				}
				begin := time.Now()
				lost, ok := errors.AsType[*env.Error](c.bury(t.Context(), tt.why))
				if took := time.Since(begin); !ok || lost.Status != tt.want || took > 5*time.Second {
					t.Errorf("after %s: %v, want %s within 5 s", took, lost, tt.want)
				}
				c.burial.Wait()
				e.pulse.close()
			})
		})
	}
}

func ptr[T any](v T) *T { return &v }

// dialled is an engine that takes connections and says nothing, spoken to as the
// client does where a request becomes a connection.
type dialled struct {
	mute
	transport *http.Transport
	addr      string
	err       chan error // how the client's end of a connection ended
}

func (d *dialled) ContainerAttach(ctx context.Context, _ string, _ container.AttachOptions) (types.HijackedResponse, error) {
	conn, err := d.transport.DialContext(ctx, "unix", d.addr)
	if err == nil {
		_, err = conn.Read(make([]byte, 1)) // the answer
	}
	d.err <- err
	return types.HijackedResponse{}, err
}

// What was dialled for a request that was given up ends with it, and Close
// waits for that.
func TestAttachThatIsGivenUp(t *testing.T) {
	var lc net.ListenConfig
	addr := filepath.Join(t.TempDir(), "s")
	l, err := lc.Listen(t.Context(), "unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := &dialled{transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}, addr: addr, err: make(chan error, 1)}
	if !leashed(d.transport) {
		t.Fatal("no leash for a plain connection")
	}
	e := engineOf(d, silent)
	e.pulse.limit = 100 * time.Millisecond
	_, err = e.api.ContainerAttach(t.Context(), "a", container.AttachOptions{})
	if !errors.Is(err, errNoPulse) {
		t.Errorf("%v, want the loss of the engine", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-d.err:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("the connection ended with %v, want it closed", err)
		}
	default:
		t.Error("the connection goes on after Close")
	}
}
