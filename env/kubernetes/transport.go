//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/link"
	"github.com/minibench/mini/env/helper/pod"
)

// Waits between connections.
const (
	firstReconnect   = 20 * time.Millisecond
	longestReconnect = 5 * time.Second
	// greetTimeout is how long a connection may take to reach the helper.
	greetTimeout = 20 * time.Second
)

// A command may kill the relays of its pod. After maxLosses lost connections within
// lossPeriod the sandbox counts as hostile.
const (
	maxLosses  = 10
	lossPeriod = time.Minute
)

// startTransport connects the link to the pod, again and again, until the pod is closed
// or has ended.
func (p *Pod) startTransport() {
	ctx, cancel := context.WithCancelCause(p.cluster.ctx)
	p.stopTransport = cancel
	p.workers.Go(func() { p.keepConnected(ctx) })
	p.workers.Go(func() { p.watchEnd(ctx) })
}

// keepConnected runs one connection after the other.
func (p *Pod) keepConnected(ctx context.Context) {
	wait := firstReconnect
	var losses []time.Time
	for ctx.Err() == nil {
		err := p.runConnection(ctx, func() {
			wait = firstReconnect
			losses = append(losses, time.Now())
			p.connections.Add(1)
			p.setReady()
		})
		if len(losses) > maxLosses {
			losses = losses[1:]
			if time.Since(losses[0]) < p.cluster.lossPeriod {
				p.end(fmt.Errorf("%w: %d connections were lost within %s", helper.ErrFrame, maxLosses, p.cluster.lossPeriod))
				return
			}
		}
		if errors.Is(err, link.ErrForged) {
			p.end(fmt.Errorf("%w: %w", helper.ErrFrame, err))
			return
		}
		down, limit := p.link.Down(), p.cluster.settings.Lease+greetTimeout // the helper has ended by then
		if p.connections.Load() == 0 {
			// The SPDY client has no type for the refusal of the API server.
			if err != nil && (apierrors.IsForbidden(err) || strings.Contains(err.Error(), " is forbidden: ")) {
				p.end(&env.Error{Status: env.StartFailed, Err: err, Hint: hintRights})
				return
			}
			down, limit = time.Since(p.running), p.cluster.settings.StartTimeout
		}
		if down > limit {
			p.end(fmt.Errorf("%w: no connection for %s: %w", errUnreachable, down.Round(time.Second), err))
			return
		}
		if !sleep(ctx, wait) {
			return
		}
		wait = min(2*wait, longestReconnect)
	}
}

// errUnreachable means that a pod could not be reached for longer than its lease.
var errUnreachable = errors.New("the pod cannot be reached")

// runConnection runs one connection until it ends.
func (p *Pod) runConnection(ctx context.Context, connected func()) error {
	conn, err := p.cluster.openExec(ctx, p.name, helperPath, pod.RelayArg)
	if err != nil {
		return err
	}
	greeting := time.AfterFunc(greetTimeout, func() { conn.Close() }) //nolint:errcheck // ends the connection
	defer greeting.Stop()
	stop := context.AfterFunc(ctx, func() {
		time.Sleep(closeGrace) // the link may be saying that it ends
		conn.Close()           //nolint:errcheck // likewise
	})
	defer stop()
	err = p.link.Run(conn, func() { greeting.Stop(); connected() })
	execErr := conn.failure()
	switch {
	case execErr == nil:
		return err
	case errors.Is(err, io.ErrClosedPipe): // because exec has failed
		return execErr
	}
	return fmt.Errorf("%w (%w)", err, execErr)
}

// closeGrace is how long the end of the link may take to be sent.
const closeGrace = 200 * time.Millisecond

// watchEnd ends the conversation when the pod ends.
func (p *Pod) watchEnd(ctx context.Context) {
	for {
		current, gone, changed := p.state.get()
		var ended *env.Error
		if current != nil {
			ended = endState(current)
		}
		if gone && ended == nil {
			ended = &env.Error{Status: env.ContainerDied, Err: errors.New("the pod was deleted"), Hint: hintDeleted}
		}
		if ended != nil {
			p.end(ended)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
