package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/minibench/mini/configs"
)

// firstRun is the configuration of mini itself. Where there is a terminal, and no
// model or no key for it yet, it asks for them first, and keeps the answers.
func firstRun(ctx context.Context, s Streams, c *configFlags) (*configs.Resolved, error) {
	shipped := configKinds["task"]
	cfg, err := c.resolve(ctx, shipped)
	if err != nil {
		return nil, err
	}
	if answerable(cfg) || !s.Terminal {
		return cfg, c.sayLocal(s.Err)
	}
	if _, err := fmt.Fprintf(s.Err, "mini: %s.\n\n", missing(cfg)); err != nil {
		return nil, err
	}
	done, err := setUp(ctx, s, cfg)
	if err != nil {
		return nil, before(err)
	}
	if !done.ready() {
		return nil, usagef("%s is not set yet: export %s=..., and start mini again", done.keyEnv, done.keyEnv)
	}
	if c.local, err = done.layers(); err != nil { // what was answered just now holds, whatever the flags say
		return nil, err
	}
	return c.resolve(ctx, shipped)
}

// answerable says that a model can be asked, as far as one can tell.
func answerable(cfg *configs.Resolved) bool {
	return !slices.ContainsFunc(modelsOf(cfg), func(one *configs.Resolved) bool {
		m := one.Model
		return m.Class != "scripted" && (m.Name == "" || m.BaseURL == "" && os.Getenv(m.APIKeyEnv) == "")
	})
}

// missing is what has to be set first.
func missing(cfg *configs.Resolved) string {
	if cfg.Model.Name == "" {
		return "no model is set up yet"
	}
	return fmt.Sprintf("there is no key for %.80s: %s is not set", cfg.Model.Name, cfg.Model.APIKeyEnv)
}
