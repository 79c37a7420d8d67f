package cli

import (
	"cmp"
	"slices"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/model"
)

// What a reply may need where nobody says it: so many tokens, but no more than a
// tenth of the window.
const (
	usualReply = 4096
	tenth      = 10
)

// setWindow tells the agent when the window of its model nears its end: of
// several models, the one whose is first, unless a longer one is there for that.
// Nothing ends where no window is known.
func setWindow(cfg *configs.Resolved) error {
	var chosen *agent.Window
	largest := slices.Contains(cfg.Model.Route.On, string(model.ContextWindowExceeded))
	for _, one := range modelsOf(cfg) {
		known, err := factsOf(one)
		if err != nil {
			return err
		}
		m := one.Model
		w := agent.Window{Tokens: cmp.Or(m.Window, known.Window), Estimate: model.EstimateTokens}
		if w.Tokens == 0 && largest {
			return nil // it may be larger than any
		}
		if w.Tokens == 0 {
			continue
		}
		if w.Reserve = reserveOf(m, w.Tokens); w.Reserve >= w.Tokens {
			return usagef("model.context_reserve: %d leaves nothing of the window of %d tokens that %.80s has", w.Reserve, w.Tokens, m.Name)
		}
		if chosen == nil || (w.Tokens-w.Reserve > chosen.Tokens-chosen.Reserve) == largest {
			chosen = &w
		}
	}
	if chosen != nil {
		cfg.Agent.Context = *chosen
	}
	return nil
}

// reserveOf is how much of a window is for the reply. A bound on replies that is
// more than half of the window is no expectation, and would leave nothing to ask.
func reserveOf(m configs.Model, window int64) int64 {
	if m.Reserve > 0 {
		return m.Reserve
	}
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if n := wholeNumber(m.Kwargs[key]); n > 0 {
			return min(n, window/2)
		}
	}
	return min(usualReply, window/tenth)
}

// wholeNumber is a number as YAML and JSON give it; 0 is none.
func wholeNumber(v any) int64 {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}
