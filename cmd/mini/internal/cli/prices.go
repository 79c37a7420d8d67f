package cli

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/price"
	"github.com/minibench/mini/runner/report"
)

// facts are what is known of a model without asking anybody.
type facts struct {
	price.Model
	// source says where the price is from; empty where none is known.
	source string
}

// factsOf is about the one model of a configuration without a route, or with
// that of one (see modelsOf). It looks in the configuration, then in the user's table, then in mini's.
// Prices of the table hold at its hosts only, unless model.price_as names the
// model whose price is meant, whoever serves it.
func factsOf(cfg *configs.Resolved) (facts, error) {
	m := cfg.Model
	if m.Class == "scripted" {
		return facts{Model: price.Model{Price: model.Price{Free: true}}, source: "the script"}, nil
	}
	tables, sources, err := tablesOf(m.PriceFile)
	if err != nil {
		return facts{}, err
	}
	var f facts
	for i, t := range tables {
		found, ok := t.Find(baseURL(m), m.Name)
		if m.PriceAs != "" {
			found, ok = t.Named(m.PriceAs)
		}
		if ok {
			f = facts{found, sources[i]}
			break
		}
	}
	if m.PriceAs != "" && f.source == "" {
		return f, usagef("model.price_as: no table has the model %.80q; see model/price/table.yaml, or name a table of your own as model.price_file", m.PriceAs)
	}
	if m.Price.Known() {
		f.Price, f.source = m.Price, "model.price"
	}
	return f, nil
}

// tablesOf are the user's table, if there is one, and mini's.
func tablesOf(path string) (tables []price.Table, sources []string, err error) {
	if path != "" {
		data, err := os.ReadFile(path) //nolint:gosec // G304: reading the named file is the purpose
		if err != nil {
			return nil, nil, usagef("model.price_file: %v", err)
		}
		own, err := price.Parse(data)
		if err != nil {
			return nil, nil, usagef("model.price_file: %s: %v", path, err)
		}
		tables, sources = append(tables, own), append(sources, path)
	}
	shipped, err := price.Shipped()
	if err != nil {
		return nil, nil, err
	}
	return append(tables, shipped), append(sources, "mini's table of "+shipped.Date), nil
}

// baseURL is where a model is asked.
func baseURL(m configs.Model) string {
	if m.Class == "anthropic" {
		return cmp.Or(m.BaseURL, anthropic.DefaultBaseURL)
	}
	return cmp.Or(m.BaseURL, openai.DefaultBaseURL)
}

// billers are hosts of servers that say in each answer what it cost.
var billers = []string{"openrouter.ai"}

// bills says whether a server is known to tell its prices itself.
func bills(m configs.Model) bool {
	u, err := url.Parse(m.BaseURL)
	if err != nil {
		return false
	}
	for _, host := range billers {
		if u.Hostname() == host || strings.HasSuffix(u.Hostname(), "."+host) {
			return true
		}
	}
	return false
}

// costBounds refuses bounds of the cost that the user has set, where the cost will
// not be known: a bound that cannot hold is none. The bounds that come with mini, in
// its defaults and its profiles, stop no model whose price is not known; then a note
// says that they do not hold, and which bound does.
func costBounds(w io.Writer, cfg *configs.Resolved) error {
	var unknown []string
	all := modelsOf(cfg)
	if one := summaryOf(cfg); one != nil {
		all = append(all, one)
	}
	for _, one := range all {
		f, err := factsOf(one)
		if err != nil {
			return err
		}
		if f.source != "" || bills(one.Model) {
			continue
		}
		for _, bound := range []struct {
			key   string
			value float64
		}{{"agent.cost_limit", cfg.Agent.CostLimit}, {"run.total_cost_limit", cfg.Run.TotalCostLimit}} {
			origin, ok := cfg.Origin(bound.key)
			if bound.value > 0 && ok && !origin.Shipped() && !origin.ShippedProfile() {
				return usagef("%s is %v (%s), and what %s costs at %s is not known; set model.price, model.price_as or model.price_file (model.price.free=true costs nothing), or the bound to 0",
					bound.key, bound.value, origin, one.Model.Name, baseURL(one.Model))
			}
		}
		if name := fmt.Sprintf("%.80q", one.Model.Name); !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	if cfg.Agent.CostLimit > 0 && len(unknown) > 0 {
		steps := "-c agent.step_limit=N sets a limit that holds"
		if n := cfg.Agent.StepLimit; n > 0 {
			steps = fmt.Sprintf("the limit of %s holds", report.Count(n, "step"))
		}
		_, err := fmt.Fprintln(w, said(fmt.Sprintf(
			"note: what %s costs is not known, so no cost limit holds (model.price sets a price); %s", strings.Join(unknown, ", "), steps)))
		return err
	}
	return nil
}

// factsOfAll is what holds for a plan: a price is known where that of every model
// is, and its source is that of all.
func factsOfAll(cfg *configs.Resolved) (facts, error) {
	var all facts
	var sources []string
	for _, one := range modelsOf(cfg) {
		f, err := factsOf(one)
		if err != nil {
			return facts{}, err
		}
		if f.source == "" {
			return facts{}, nil
		}
		all.Model = f.Model
		if !slices.Contains(sources, f.source) {
			sources = append(sources, f.source)
		}
	}
	all.source = strings.Join(sources, " and ")
	return all, nil
}
