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

// A dead engine ends its connections, and whoever waits on one is told at once.
// One that is frozen, or behind a network that swallows what is sent, says
// nothing at all. The pulse is for that: while anybody has waited for longer
// than a beat, the engine is asked for a sign of life at every beat, and when
// none comes for Silence, everybody who waits is told that it is lost.
const (
	beat           = 500 * time.Millisecond
	defaultSilence = 4 * time.Second
)

// errNoPulse is why what waits on an engine ends when the engine has no pulse.
var errNoPulse = errors.New("the container engine accepts connections and answers nothing")

// pulse belongs to one engine. Nothing runs while nobody waits.
type pulse struct {
	ask   func(context.Context) error // for a sign of life
	round func(context.Context)       // what else is asked at each beat; ends with its context
	limit time.Duration

	// heard is when the engine was last heard of, as a time since born: an
	// answer, or any byte out of a container.
	born   time.Time
	heard  atomic.Int64
	worker sync.WaitGroup

	mu      sync.Mutex
	waiting map[*vigil]struct{}
	stop    context.CancelFunc // of the worker; nil while there is none
}

// vigil is somebody who waits for the engine, or for a container of its.
type vigil struct {
	lost  func(error) // called once at most, and must not block
	timer *time.Timer
	over  bool // guarded by the pulse
}

func newPulse(limit time.Duration, ask func(context.Context) error, round func(context.Context)) *pulse {
	return &pulse{ask: ask, round: round, limit: limit, born: time.Now(), waiting: map[*vigil]struct{}{}}
}

// note says that the engine was heard of just now.
func (p *pulse) note() { p.heard.Store(int64(time.Since(p.born))) }

// silence is for how long it was not.
func (p *pulse) silence() time.Duration {
	return time.Since(p.born) - time.Duration(p.heard.Load())
}

// watch has lost called when the engine falls silent before leave is. It costs
// a timer; most waits are over before the first beat.
func (p *pulse) watch(ctx context.Context, lost func(error)) (leave func()) {
	v := &vigil{lost: lost}
	v.timer = time.AfterFunc(beat, func() { p.join(ctx, v) })
	return func() {
		if !v.timer.Stop() {
			p.part(v)
		}
	}
}

func (p *pulse) join(ctx context.Context, v *vigil) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.over {
		return
	}
	p.waiting[v] = struct{}{}
	if p.stop == nil {
		ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx)) // the worker is for those too who join later
		p.worker.Go(func() { p.listen(ctx) })
	}
}

func (p *pulse) part(v *vigil) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v.over = true
	delete(p.waiting, v)
	if len(p.waiting) == 0 && p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// close waits for the worker; nobody waits for the engine any more.
func (p *pulse) close() { p.worker.Wait() }

// listen asks until nobody waits.
func (p *pulse) listen(ctx context.Context) {
	p.note() // what was before is nobody's business
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		asked := time.Now()
		err := p.question(ctx)
		stalled := time.Since(asked) > p.limit+2*beat // it was this process that stood still
		switch {
		case ctx.Err() != nil:
			return
		case err == nil, answered(err), stalled:
			p.note()
		case p.silence() >= p.limit:
			p.announce(&env.Error{
				Status: env.DaemonUnavailable, Op: "wait for the container engine", Hint: hintSilent,
				Err: fmt.Errorf("%w for %s", errNoPulse, p.limit),
			})
		}
		if err == nil {
			p.round(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *pulse) question(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	return p.ask(ctx)
}

// answered recognises a machine that is there and refuses: what stands of its
// connections tells more than that. A socket may be removed, and the engine
// behind it go on.
func answered(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

func (p *pulse) announce(lost error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for v := range p.waiting {
		v.lost(lost)
		delete(p.waiting, v)
	}
	// The worker goes on until those who were told have left; who joins in the
	// meantime has all of the time before him.
	p.note()
}
