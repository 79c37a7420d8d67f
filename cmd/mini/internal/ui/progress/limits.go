package progress

import (
	"net/url"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model/ratelimit"
	"github.com/minibench/mini/runner"
)

// ProviderState converts the state of a rate limiter. Points in time become
// seconds from now.
func ProviderState(s ratelimit.State) runner.ProviderState {
	remaining := func(t time.Time) float64 { return max(0, time.Until(t).Seconds()) }
	return runner.ProviderState{
		Limit: s.Limit, InFlight: s.InFlight, Waiting: s.Waiting,
		PauseSeconds: remaining(s.PausedUntil), MinuteFullSeconds: remaining(s.QuotaFullUntil),
	}
}

// Host returns the host and port of a URL, or "the provider" if it has no host. The
// other parts of the URL may contain a password.
func Host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the provider"
	}
	return text.Printable(u.Host)
}

// ProviderEvents returns a callback that emits each new state of a provider's rate
// limiter as a run event.
func ProviderEvents(emit func(runner.Event)) func(ratelimit.State) {
	return func(s ratelimit.State) {
		state := ProviderState(s)
		emit(runner.Event{Type: runner.ProviderChanged, Provider: &state})
	}
}
