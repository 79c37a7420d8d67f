package cli

import (
	"sync"
	"time"

	"github.com/minibench/mini/model/governor"
	"github.com/minibench/mini/runner"
)

// providerNews passes on what providers let through, once somebody listens. Of
// several endpoints it is the sum.
type providerNews struct {
	governors *governor.Governors // all endpoints; nil in tests

	mu     sync.Mutex
	emit   func(runner.Event)
	states map[int]governor.State // by the number of the model whose endpoint it is
}

// listen passes news of the models' providers to emit from now on.
func listen(models runner.Models, emit func(runner.Event)) {
	m, ok := models.(interface{ provider() *providerNews })
	if !ok {
		return
	}
	news := m.provider()
	news.mu.Lock()
	defer news.mu.Unlock()
	news.emit = emit
}

// of is what the governor of a model is to call.
func (p *providerNews) of(n int) func(governor.State) {
	return func(s governor.State) { p.changed(n, s) }
}

func (p *providerNews) changed(n int, s governor.State) {
	p.mu.Lock()
	if p.states == nil {
		p.states = map[int]governor.State{}
	}
	p.states[n] = s
	sum, emit := p.sum(), p.emit
	p.mu.Unlock()
	if emit != nil {
		emit(runner.Event{Type: runner.Provider, Provider: sum})
	}
}

// sum is no bound where one endpoint has none, and the longest of the pauses.
func (p *providerNews) sum() *runner.ProviderState {
	sum, bounded := &runner.ProviderState{}, true
	for _, s := range p.states {
		bounded = bounded && s.Limit > 0
		sum.Limit += s.Limit
		sum.InFlight += s.InFlight
		sum.Waiting += s.Waiting
		sum.Full = max(sum.Full, time.Until(s.FullUntil).Seconds())
		sum.Pause = max(sum.Pause, time.Until(s.PausedUntil).Seconds())
	}
	if !bounded {
		sum.Limit = 0
	}
	return sum
}
