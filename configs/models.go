package configs

import (
	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
)

// Models returns the configurations of the model, or of all models of a route.
// A model of another class than the section model obeys the environment
// variables of its own provider.
func Models(cfg *Resolved) []*Resolved {
	all := cfg.RouteConfigs()
	for _, one := range all {
		if one.Model.Class == cfg.Model.Class || one.Model.BaseURL != "" {
			continue
		}
		for _, v := range ProviderVariables[one.Model.Class] {
			if v.Key != "model.base_url" {
				continue
			}
			if address, layer := ProviderURL(v.Name); address != "" {
				one.SetBaseURL(layer, address)
			}
		}
	}
	return all
}

// SummaryModel returns the configuration of the model that makes summaries,
// without tools. It returns nil if the attempt's own model makes them, or if
// there are none.
func SummaryModel(cfg *Resolved) *Resolved {
	if cfg.Agent.Compaction != agent.CompactSummarize {
		return nil
	}
	one := cfg.SummaryModel()
	if one != nil {
		one.Agent.Protocol, one.Model.Route = protocol.Text, Route{}
	}
	return one
}

// ProviderVariables maps model classes to the environment variables of the
// provider's own tools, and the settings that they set.
var ProviderVariables = map[string][]struct{ Name, Key string }{
	"openai":    {{"OPENAI_BASE_URL", "model.base_url"}, {"OPENAI_MODEL", "model.model_name"}},
	"anthropic": {{"ANTHROPIC_BASE_URL", "model.base_url"}, {"ANTHROPIC_MODEL", "model.model_name"}},
}
