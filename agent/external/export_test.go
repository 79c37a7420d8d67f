package external

import (
	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/bridge"
)

// Record records exchanges as those of an attempt.
func Record(a *agent.Attempt, task string, exchanges []bridge.Exchange) error {
	r := newRecorder(a, false, task)
	for _, x := range exchanges {
		if err := r.record(x); err != nil {
			return err
		}
	}
	return r.end()
}
