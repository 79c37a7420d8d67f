package setup

import (
	"cmp"
	"slices"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/images/web"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	modelopen "github.com/minibench/mini/model/open"
)

// The default reserve for a reply is defaultReserve tokens, but at most
// 1/maxReserveFraction of the window.
const (
	defaultReserve     = 4096
	maxReserveFraction = 10
)

// setWindow sets the context window of the agent. If there are several models, it is the window
// with the fewest tokens besides the reserve, or the most if the route falls back on
// ContextWindowExceeded. If no window is known, or with this fallback one is unknown, there is
// no limit.
func setWindow(cfg *configs.Resolved) error {
	var chosen *agent.ContextWindow
	largest := slices.Contains(cfg.Model.Route.On, string(model.ContextWindowExceeded))
	for _, one := range configs.ModelConfigs(cfg) {
		facts, err := modelopen.ModelFacts(one)
		if err != nil {
			return err
		}
		m := one.Model
		w := agent.ContextWindow{Tokens: cmp.Or(m.ContextWindow, facts.ContextWindow)}
		if w.Tokens == 0 && largest {
			return nil // the unknown window may be the largest
		}
		if w.Tokens == 0 {
			continue
		}
		if w.Reserve = replyReserve(m, w.Tokens); w.Reserve >= w.Tokens {
			return usage.Errorf("model.context_reserve: %d leaves nothing of the window of %d tokens that %.80s has", w.Reserve, w.Tokens, m.Name)
		}
		if chosen == nil || (w.Tokens-w.Reserve > chosen.Tokens-chosen.Reserve) == largest {
			chosen = &w
		}
	}
	if chosen != nil {
		cfg.Agent.Window = *chosen
	}
	return nil
}

// replyReserve returns the number of tokens reserved for the reply: the configured reserve,
// max_tokens (but at most half of the window), or the default.
func replyReserve(m configs.Model, window int64) int64 {
	if m.ReplyReserve > 0 {
		return m.ReplyReserve
	}
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if n := wholeNumber(m.Kwargs[key]); n > 0 {
			return min(n, window/2)
		}
	}
	return min(defaultReserve, window/maxReserveFraction)
}

// wholeNumber converts a number decoded from YAML or JSON; 0 if v is no number.
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

// setImages enables images if every model accepts them, and sets the fetcher of images.
func setImages(cfg *configs.Resolved) error {
	images := &cfg.Agent.Images
	images.Supported = true
	for _, m := range configs.ModelConfigs(cfg) {
		switch m.Model.Images {
		case "yes":
		case "no":
			images.Supported = false
		default:
			facts, err := modelopen.ModelFacts(m)
			if err != nil {
				return err
			}
			images.Supported = images.Supported && facts.AcceptsImages
		}
	}
	if images.Fetch && images.Fetcher == nil {
		images.Fetcher = web.New(false)
	}
	return nil
}
