package setup

import (
	"encoding/json"

	"github.com/minibench/mini/agent"
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
	for name, section := range map[string]any{
		"tools": redacted.Tools, "skills": redacted.Skills, "memory": redacted.Memory, "agents": redacted.Agents,
	} {
		if !isOff(section) {
			settings[name] = section
		}
	}
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

// clearUnused clears settings of compaction that have no effect on the attempt.
func clearUnused(c *configs.Config) {
	if !configs.UsesCluster(c.Environment.Class) {
		c.Environment.Kubernetes = configs.Kubernetes{}
	}
	a := &c.Agent
	if a.Class != "" { // another agent has prompts of its own
		a.SystemTemplate, a.InstanceTemplate, a.ObservationTemplate, a.FormatErrorTemplate = "", "", "", ""
	}
	if a.Compaction == "" || a.Compaction == agent.CompactionOff {
		a.Compaction, a.CompactionTokens, a.CompactionKeep = "", 0, 0
	}
	if a.Compaction != agent.CompactionSummarize {
		a.SummaryTemplate, a.SummaryMaxChars, c.Model.Summary = "", 0, nil
	}
}
