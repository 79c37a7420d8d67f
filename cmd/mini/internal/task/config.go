package task

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
)

// resolveConfig returns the configuration of a task. On a terminal, if the model or its key is
// missing, it asks for them and saves the answers.
func resolveConfig(ctx context.Context, s cmdutil.Streams, c *settings.Flags) (*configs.Resolved, error) {
	shipped := config.ConfigKinds["task"]
	cfg, err := c.Resolve(ctx, shipped)
	if err != nil {
		return nil, err
	}
	if hasModel(cfg) || !s.Terminal {
		c.PrintLocalModel(s.Err)
		return cfg, nil
	}
	_, _ = fmt.Fprintf(s.Err, "mini: %s.\n\n", missingText(cfg))
	done, err := config.SetUp(ctx, s, cfg)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	if !done.Ready() {
		return nil, usage.Errorf("%s is not set yet: export %s=..., and start mini again", done.KeyEnv, done.KeyEnv)
	}
	if c.Overrides, err = done.Layers(); err != nil { // the answers override the flags
		return nil, err
	}
	return c.Resolve(ctx, shipped)
}

// hasModel reports whether every model has a name and a key.
func hasModel(cfg *configs.Resolved) bool {
	return !slices.ContainsFunc(configs.Models(cfg), func(one *configs.Resolved) bool {
		m := one.Model
		return m.Class != "scripted" && (m.Name == "" || m.BaseURL == "" && os.Getenv(m.APIKeyEnv) == "")
	})
}

// missingText says which setting is missing.
func missingText(cfg *configs.Resolved) string {
	if cfg.Model.Name == "" {
		return "no model is set up yet"
	}
	return fmt.Sprintf("there is no key for %.80s: %s is not set", cfg.Model.Name, cfg.Model.APIKeyEnv)
}
