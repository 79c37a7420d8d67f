package configs

import (
	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
)

// ModelConfigs returns the configurations of the model, or of all models of a route.
// A model that has another class than the section model, and no base URL, gets
// the address in the environment variable of its own provider.
func ModelConfigs(cfg *Resolved) []*Resolved {
	all := cfg.RouteConfigs()
	for _, modelCfg := range all {
		if modelCfg.Model.Class == cfg.Model.Class || modelCfg.Model.BaseURL != "" {
			continue
		}
		for _, v := range ProviderVariables[modelCfg.Model.Class] {
			if v.Key != "model.base_url" {
				continue
			}
			if address, layer := ProviderURL(v.Name); address != "" {
				modelCfg.SetBaseURL(layer, address)
			}
		}
	}
	return all
}

// SummaryModelConfig returns the configuration of the model that makes summaries,
// without tools. It returns nil if the attempt's own model makes the summaries,
// or if the configuration disables summaries.
func SummaryModelConfig(cfg *Resolved) *Resolved {
	if cfg.Agent.Compaction != agent.CompactionSummarize {
		return nil
	}
	summaryCfg := cfg.SummaryConfig()
	if summaryCfg != nil {
		summaryCfg.Agent.Protocol, summaryCfg.Model.Route = protocol.Text, Route{}
	}
	return summaryCfg
}

// ProviderVariables maps model classes to the environment variables of the
// provider's own tools, and the settings that they set. A later one overrides an earlier
// one. OPENAI_API_BASE is litellm's.
var ProviderVariables = map[string][]struct{ Name, Key string }{
	"openai":    {{"OPENAI_API_BASE", "model.base_url"}, {"OPENAI_BASE_URL", "model.base_url"}, {"OPENAI_MODEL", "model.model_name"}},
	"anthropic": {{"ANTHROPIC_BASE_URL", "model.base_url"}, {"ANTHROPIC_MODEL", "model.model_name"}},
}
