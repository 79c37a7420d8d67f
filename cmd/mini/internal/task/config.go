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

// resolveConfig returns the configuration of a task. If the model or its key is missing, and the
// user is at a terminal, it asks for them and saves the answers.
func resolveConfig(ctx context.Context, s cmdutil.Streams, c *settings.Flags) (*configs.Resolved, error) {
	builtin := config.BuiltinConfigByKind["task"]
	cfg, err := c.Resolve(ctx, builtin)
	if err != nil {
		return nil, err
	}
	if hasModel(cfg) || !s.Interactive {
		c.PrintNotes(s.Err, cfg)
		return cfg, nil
	}
	_, _ = fmt.Fprintf(s.Err, "mini: %s.\n\n", missingText(cfg))
	answers, err := config.SetUp(ctx, s, cfg)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	if !answers.IsReady() {
		return nil, usage.Errorf("%s is not set yet: export %s=..., and start mini again", answers.KeyEnv, answers.KeyEnv)
	}
	if c.TopLayers, err = answers.Layers(); err != nil { // the answers override the flags
		return nil, err
	}
	return c.Resolve(ctx, builtin)
}

// hasModel reports whether every model has a name, and a key or a server that may need none.
func hasModel(cfg *configs.Resolved) bool {
	return !slices.ContainsFunc(configs.ModelConfigs(cfg), func(resolved *configs.Resolved) bool {
		m := resolved.Model
		return m.Class != "scripted" && (m.Name == "" || m.BaseURL == "" && os.Getenv(m.APIKeyEnv) == "")
	})
}

// missingText describes the missing setting: the model or its key.
func missingText(cfg *configs.Resolved) string {
	if cfg.Model.Name == "" {
		return "no model is set up yet"
	}
	return fmt.Sprintf("there is no key for %.80s: %s is not set", cfg.Model.Name, cfg.Model.APIKeyEnv)
}
