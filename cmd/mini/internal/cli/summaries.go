package cli

import (
	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/governor"
	"github.com/minibench/mini/runner"
)

// summarized are models with another one beside them that makes summaries.
type summarized struct {
	runner.Models
	by runner.Models
}

// Summary implements runner.Summaries.
func (s summarized) Summary(in datasets.Instance) (model.Model, error) { return s.by.For(in) }

// told is what models have that tell news of their providers.
type told interface{ provider() *providerNews }

// summarizedAPI are such models behind an API.
type summarizedAPI struct {
	summarized
	told
}

// withSummaries adds the model that makes summaries, where one is configured.
func withSummaries(cfg *configs.Resolved, models runner.Models, rows []datasets.Instance) (runner.Models, error) {
	one := summaryOf(cfg)
	if one == nil {
		return models, nil
	}
	var by runner.Models
	governors := &governor.Governors{}
	api, isAPI := models.(told)
	if isAPI { // what may be asked of an endpoint is shared
		governors = api.provider().governors
	}
	if one.Model.Class == "scripted" {
		script, err := loadScript(one, false)
		if err != nil {
			return nil, err
		}
		for _, in := range rows {
			if _, err := script.For(in.ID); err != nil {
				return nil, before(err)
			}
		}
		text, err := protocol.NewText("")
		if err != nil {
			return nil, err
		}
		by = scriptedModels{script, text, duration(one.Model.Delay)}
	} else {
		m, err := newProvider(one, governors, func(governor.State) {})
		if err != nil {
			return nil, err
		}
		by = oneModel{m, nil}
	}
	if isAPI {
		return summarizedAPI{summarized{models, by}, api}, nil
	}
	return summarized{models, by}, nil
}

// summaryOf is the configuration of the model that makes summaries, which is
// offered no tools; nil where that is the attempt's own, or nobody makes any.
func summaryOf(cfg *configs.Resolved) *configs.Resolved {
	if cfg.Agent.Compaction != agent.CompactSummarize {
		return nil
	}
	one := cfg.Summarizing()
	if one != nil {
		one.Agent.Protocol = protocol.Text
	}
	return one
}
