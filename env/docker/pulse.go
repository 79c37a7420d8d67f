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
// none comes for silenceLimit, everybody who waits is told that it is lost.
const (
	beat         = 500 * time.Millisecond
	silenceLimit = 4 * time.Second
)

// errNoPulse is why what waits on an engine ends when the engine has no pulse.
var errNoPulse = errors.New("the container engine accepts connections and answers nothing")

// pulse belongs to one engine. Nothing runs while nobody waits, but for a beat.
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
	since time.Time
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

// watch has lost called when the engine falls silent before leave is. The worker
// outlives the wait by a beat: most waits are shorter, and the next one follows.
// Starting a timer for each would wake a thread for every command.
func (p *pulse) watch(ctx context.Context, lost func(error)) (leave func()) {
	v := &vigil{lost: lost, since: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[v] = struct{}{}
	if p.stop == nil {
		ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx)) // the worker is for those too who join later
		p.worker.Go(func() { p.listen(ctx) })
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, v)
	}
}

// close ends the worker; nobody waits for the engine any more.
func (p *pulse) close() {
	p.mu.Lock()
	if p.stop != nil {
		p.stop()
	}
	p.mu.Unlock()
	p.worker.Wait()
}

// listen asks at every beat while somebody has waited for one.
func (p *pulse) listen(ctx context.Context) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for asking := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		awaited, going := p.awaited()
		if !going {
			return
		}
		if awaited && !asking {
			p.note() // no call waited before, so the silence says nothing
		}
		if asking = awaited; !asking {
			continue
		}
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
	}
}

// awaited says whether somebody has waited for a beat. Where nobody waits at all
// the worker ends.
func (p *pulse) awaited() (long, going bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.stop()
		p.stop = nil
		return false, false
	}
	for v := range p.waiting {
		long = long || time.Since(v.since) >= beat
	}
	return long, true
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
		if time.Since(v.since) >= p.limit { // the others have their time before them
			v.lost(lost)
			delete(p.waiting, v)
		}
	}
	p.note()
}
