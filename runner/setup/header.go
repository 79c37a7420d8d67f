package setup

import (
	"encoding/json"

	"github.com/minibench/mini/configs"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/version"
	"github.com/minibench/mini/trajectories"
)

// NewHeader returns a header with the fields that all journals of a run share.
func NewHeader(cfg *configs.Resolved, environmentClass string) (trajectories.Header, error) {
	redacted := cfg.Redacted()
	clearUnused(&redacted)
	settings := map[string]any{
		"agent": redacted.Agent, "model": redacted.Model, "environment": redacted.Environment, "run": redacted.Run,
	}
	if hasApprover(cfg, environmentClass) {
		settings["policy"] = redacted.Policy
	}
	addToolSettings(settings, redacted)
	config, err := json.Marshal(settings)
	image := ""
	if !envopen.IsHostClass(environmentClass) {
		image = cfg.Environment.Image
	}
	return trajectories.Header{
		Image:       image,
		MiniVersion: version.Version, ModelClass: cfg.Model.Class, EnvironmentClass: environmentClass, Config: config,
		Tools: cfg.Agent.ToolDefinitions(), Redact: envopen.Redact(cfg),
	}, err
}
