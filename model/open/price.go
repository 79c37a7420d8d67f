package modelopen

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/price"
)

// Facts are the known price and limits of a model.
type Facts struct {
	price.Model
	// Source names the origin of the price; "" if no price is known.
	Source string
}

// ModelFacts returns the facts about the model of a configuration without a
// route. It looks in the configuration, the user's price table and mini's
// table. An entry of a table applies only at the hosts that the table lists for
// it, unless model.price_as names the entry.
func ModelFacts(cfg *configs.Resolved) (Facts, error) {
	m := cfg.Model
	if m.Class == "scripted" {
		return Facts{Model: price.Model{Price: model.Price{Free: true}}, Source: "the script"}, nil
	}
	tables, sources, err := priceTables(m.PriceFile)
	if err != nil {
		return Facts{}, err
	}
	var f Facts
	for i, t := range tables {
		found, ok := t.Find(baseURL(m), m.Name)
		if m.PriceAs != "" {
			found, ok = t.FindByName(m.PriceAs)
		}
		if ok {
			f = Facts{found, sources[i]}
			break
		}
	}
	if m.PriceAs != "" && f.Source == "" {
		return f, usage.Errorf("model.price_as: no price table has the model %.80q; see model/price/table.yaml, or set model.price_file", m.PriceAs)
	}
	if m.Price.IsKnown() {
		f.Price, f.Source = m.Price, "model.price"
	}
	return f, nil
}

// priceTables returns the user's price table, if path is not empty, and mini's.
func priceTables(path string) (tables []price.Table, sources []string, err error) {
	if path != "" {
		data, err := os.ReadFile(path) //nolint:gosec // G304: reading the named file is the purpose
		if err != nil {
			return nil, nil, usage.Errorf("model.price_file: %v", err)
		}
		userTable, err := price.Parse(data)
		if err != nil {
			return nil, nil, usage.Errorf("model.price_file: %s: %v", path, err)
		}
		tables, sources = append(tables, userTable), append(sources, path)
	}
	embedded, err := price.Embedded()
	if err != nil {
		return nil, nil, err
	}
	return append(tables, embedded), append(sources, "mini's table of "+embedded.Date), nil
}

// baseURL returns the address of a model's provider.
func baseURL(m configs.Model) string {
	if m.Class == "anthropic" {
		return cmp.Or(m.BaseURL, anthropic.DefaultBaseURL)
	}
	return cmp.Or(m.BaseURL, openai.DefaultBaseURL)
}

// reportsCost reports whether a model's server is known to report costs.
func reportsCost(m configs.Model) bool {
	u, err := url.Parse(m.BaseURL)
	if err != nil {
		return false
	}
	for _, p := range configs.Providers {
		known, err := url.Parse(p.BaseURL)
		if err == nil && p.ReportsCost && (u.Hostname() == known.Hostname() || strings.HasSuffix(u.Hostname(), "."+known.Hostname())) {
			return true
		}
	}
	return false
}

// CheckCostLimits returns an error if the user set a cost limit and the price of a
// model is unknown, since the limit would have no effect. If agent.cost_limit is a
// default of mini or of a built-in profile, or with model.cost_tracking: ignore_errors, it
// returns a note instead.
func CheckCostLimits(cfg *configs.Resolved) (note string, err error) {
	var unknown []string
	all := configs.ModelConfigs(cfg)
	if summaryCfg := configs.SummaryModelConfig(cfg); summaryCfg != nil {
		all = append(all, summaryCfg)
	}
	for _, modelCfg := range all {
		f, err := ModelFacts(modelCfg)
		if err != nil {
			return "", err
		}
		if f.Source != "" || reportsCost(modelCfg.Model) {
			continue
		}
		for _, limit := range []struct {
			key   string
			value float64
		}{{"agent.cost_limit", cfg.Agent.CostLimit}, {"run.total_cost_limit", cfg.Run.TotalCostLimit}} {
			origin, ok := cfg.Origin(limit.key)
			if modelCfg.Model.CostTracking != configs.IgnoreCostErrors && limit.value > 0 && ok && !origin.IsBuiltin() && !origin.IsBuiltinProfile() {
				return "", usage.Errorf("%s is %v (%s), but the price of %s at %s is unknown; "+
					"set model.price, model.price_as or model.price_file (model.price.free=true costs nothing), the limit to 0, or model.cost_tracking to ignore_errors",
					limit.key, limit.value, origin, modelCfg.Model.Name, baseURL(modelCfg.Model))
			}
		}
		if name := fmt.Sprintf("%.80q", modelCfg.Model.Name); !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	if cfg.Agent.CostLimit > 0 && len(unknown) > 0 {
		steps := "-c agent.step_limit=N sets a step limit"
		if n := cfg.Agent.StepLimit; n > 0 {
			steps = fmt.Sprintf("the limit of %s applies", text.Count(n, "step"))
		}
		note = fmt.Sprintf("note: the price of %s is unknown, so no cost limit applies (model.price sets a price); %s",
			strings.Join(unknown, ", "), steps)
	}
	return note, nil
}

// CombinedFacts returns the facts about all models of a configuration: those of the
// last model, with the sources of all. It returns no facts if one of the prices is
// unknown.
func CombinedFacts(cfg *configs.Resolved) (Facts, error) {
	var all Facts
	var sources []string
	for _, modelCfg := range configs.ModelConfigs(cfg) {
		f, err := ModelFacts(modelCfg)
		if err != nil {
			return Facts{}, err
		}
		if f.Source == "" {
			return Facts{}, nil
		}
		all.Model = f.Model
		if !slices.Contains(sources, f.Source) {
			sources = append(sources, f.Source)
		}
	}
	all.Source = strings.Join(sources, " and ")
	return all, nil
}
