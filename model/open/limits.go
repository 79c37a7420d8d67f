package modelopen

import (
	"sync"

	"github.com/minibench/mini/model/ratelimit"
)

// Limits are the rate limits of all endpoints. The zero value is ready to use.
type Limits struct {
	Limiters ratelimit.Limiters

	mu   sync.Mutex
	emit func(ratelimit.State)
}

// OnLimits sets the callback that gets the combined state of the rate limiters when one of
// them changes.
func (l *Limits) OnLimits(emit func(ratelimit.State)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emit = emit
}

// onChange calls the callback with the combined state of all endpoints: the
// sums of their limits and requests, and the latest end of a pause and of a used-up
// quota. If an endpoint in use has no limit, the sum of the limits is 0.
func (l *Limits) onChange(ratelimit.State) {
	l.mu.Lock()
	emit := l.emit
	l.mu.Unlock()
	if emit == nil {
		return
	}
	var sum ratelimit.State
	bounded := true
	for _, e := range l.Limiters.States() {
		s := e.State
		bounded = bounded && (s.Limit > 0 || s.InFlight+s.Waiting == 0)
		sum.Limit += s.Limit
		sum.InFlight += s.InFlight
		sum.Waiting += s.Waiting
		if s.QuotaFullUntil.After(sum.QuotaFullUntil) {
			sum.QuotaFullUntil = s.QuotaFullUntil
		}
		if s.PausedUntil.After(sum.PausedUntil) {
			sum.PausedUntil = s.PausedUntil
		}
	}
	if !bounded {
		sum.Limit = 0
	}
	emit(sum)
}
