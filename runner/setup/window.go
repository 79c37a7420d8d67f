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

// The default reserve for a reply is defaultReserve tokens, at most
// 1/maxReserveFraction of the window.
const (
	defaultReserve     = 4096
	maxReserveFraction = 10
)

// setWindow sets the context window of the agent. Of several models it uses the smallest, or
// the largest if the route falls back on ContextWindowExceeded. If no window is known there is
// no limit.
func setWindow(cfg *configs.Resolved) error {
	var chosen *agent.Window
	largest := slices.Contains(cfg.Model.Route.On, string(model.ContextWindowExceeded))
	for _, one := range configs.Models(cfg) {
		known, err := modelopen.ModelFacts(one)
		if err != nil {
			return err
		}
		m := one.Model
		w := agent.Window{Tokens: cmp.Or(m.Window, known.ContextWindow)}
		if w.Tokens == 0 && largest {
			return nil // unknown, possibly the largest
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

// replyReserve returns the tokens reserved for the reply. max_tokens is capped at half of the
// window.
func replyReserve(m configs.Model, window int64) int64 {
	if m.Reserve > 0 {
		return m.Reserve
	}
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if n := wholeNumber(m.Kwargs[key]); n > 0 {
			return min(n, window/2)
		}
	}
	return min(defaultReserve, window/maxReserveFraction)
}

// wholeNumber returns v, decoded from YAML or JSON, as an integer, or 0.
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

// setImages sets whether every model accepts images, and the fetcher of images.
func setImages(cfg *configs.Resolved) error {
	i := &cfg.Agent.Images
	i.Supported = true
	for _, one := range configs.Models(cfg) {
		switch one.Model.Images {
		case "yes":
		case "no":
			i.Supported = false
		default:
			known, err := modelopen.ModelFacts(one)
			if err != nil {
				return err
			}
			i.Supported = i.Supported && known.AcceptsImages
		}
	}
	if i.Fetch && i.Fetcher == nil {
		i.Fetcher = web.New(false)
	}
	return nil
}
