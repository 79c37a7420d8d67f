package docker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/minibench/mini/env"
)

// An engine that exits closes its connections. An engine that is frozen, or behind
// a network that drops packets, does not answer at all. The heartbeat detects that:
// while a caller has waited for at least heartbeatInterval, it pings the engine
// at every interval. If the engine is silent for heartbeatTimeout, all callers
// that have waited that long get an error.
const (
	heartbeatInterval = 500 * time.Millisecond
	heartbeatTimeout  = 4 * time.Second
)

// errNoHeartbeat is the error of calls that waited for an engine whose heartbeat
// failed.
var errNoHeartbeat = errors.New("the container engine accepts connections but does not answer")

// heartbeat checks that one engine is alive. Its worker runs only while callers
// wait, and up to one interval longer.
type heartbeat struct {
	ping    func(context.Context) error
	onBeat  func(context.Context) // called after each successful ping
	timeout time.Duration

	// lastAlive is when the engine last answered or a container last sent data, as the
	// time since created.
	created   time.Time
	lastAlive atomic.Int64
	worker    sync.WaitGroup

	mu      sync.Mutex
	waiting map[*waiter]struct{}
	stop    context.CancelFunc // stops the worker; nil while none runs
}

// waiter is a caller that waits for the engine, or for one of its containers.
type waiter struct {
	lost  func(error) // called at most once; must not block
	since time.Time
}

func newHeartbeat(timeout time.Duration, ping func(context.Context) error, onBeat func(context.Context)) *heartbeat {
	return &heartbeat{
		ping: ping, onBeat: onBeat, timeout: timeout, created: time.Now(), waiting: map[*waiter]struct{}{},
	}
}

// markAlive records that the engine is alive now.
func (h *heartbeat) markAlive() { h.lastAlive.Store(int64(time.Since(h.created))) }

// silence returns the time since the engine was last known to be alive.
func (h *heartbeat) silence() time.Duration {
	return time.Since(h.created) - time.Duration(h.lastAlive.Load())
}

// watch calls lost if the heartbeat fails before leave is called. All callers share one
// worker, which runs for up to one interval after the last wait: most waits are
// shorter than that, and the next wait follows soon. A timer for each wait would wake a
// thread for every command.
func (h *heartbeat) watch(ctx context.Context, lost func(error)) (leave func()) {
	w := &waiter{lost: lost, since: time.Now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[w] = struct{}{}
	if h.stop == nil {
		ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx)) // the worker also serves later callers
		h.worker.Go(func() { h.run(ctx) })
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, w)
	}
}

// close stops the worker.
func (h *heartbeat) close() {
	h.mu.Lock()
	if h.stop != nil {
		h.stop()
	}
	h.mu.Unlock()
	h.worker.Wait()
}

// run pings at every interval while a caller has waited for at least one interval.
func (h *heartbeat) run(ctx context.Context) {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for pinging := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		due, running := h.checkWaiters()
		if !running {
			return
		}
		if due && !pinging {
			h.markAlive() // no ping was due before, so there was no reason for an answer
		}
		if pinging = due; !pinging {
			continue
		}
		start := time.Now()
		err := h.pingOnce(ctx)
		stalled := time.Since(start) > h.timeout+2*heartbeatInterval // this process itself was suspended
		switch {
		case ctx.Err() != nil:
			return
		case err == nil, isRefused(err), stalled:
			h.markAlive()
		case h.silence() >= h.timeout:
			h.notifyLost(&env.Error{
				Status: env.DaemonUnavailable, Op: "wait for the container engine", Hint: hintSilent,
				Err: fmt.Errorf("%w for %s", errNoHeartbeat, h.timeout),
			})
		}
		if err == nil {
			h.onBeat(ctx)
		}
	}
}

// checkWaiters reports whether a ping is due, because a caller has waited for an
// interval. If no caller waits, it ends the worker.
func (h *heartbeat) checkWaiters() (due, running bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		h.stop()
		h.stop = nil
		return false, false
	}
	for w := range h.waiting {
		due = due || time.Since(w.since) >= heartbeatInterval
	}
	return due, true
}

func (h *heartbeat) pingOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	return h.ping(ctx)
}

// isRefused reports whether the machine is reachable but nothing listens. That does
// not prove that the engine is dead: its socket may have been removed while it
// runs. The open connections show its state.
func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// notifyLost passes the error to the callers that have waited for the timeout.
func (h *heartbeat) notifyLost(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.waiting {
		if time.Since(w.since) >= h.timeout { // later callers get their full timeout
			w.lost(err)
			delete(h.waiting, w)
		}
	}
	h.markAlive()
}
