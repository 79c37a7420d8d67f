package progress

import (
	"net/url"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model/ratelimit"
	"github.com/minibench/mini/runner"
)

// ProviderState converts the state of a rate limiter, with relative times.
func ProviderState(s ratelimit.State) runner.ProviderState {
	left := func(t time.Time) float64 { return max(0, time.Until(t).Seconds()) }
	return runner.ProviderState{
		Limit: s.Limit, InFlight: s.InFlight, Waiting: s.Waiting, PauseSeconds: left(s.PausedUntil), MinuteFullSeconds: left(s.QuotaFullUntil),
	}
}

// Host returns the host of an address, which may contain a password.
func Host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the provider"
	}
	return text.Printable(u.Host)
}

// EmitLimits returns a callback that emits the state of a provider as a run
// event.
func EmitLimits(emit func(runner.Event)) func(ratelimit.State) {
	return func(s ratelimit.State) {
		state := ProviderState(s)
		emit(runner.Event{Type: runner.ProviderChanged, Provider: &state})
	}
}
