package cli

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/governor"
	"github.com/minibench/mini/model/route"
	"github.com/minibench/mini/runner"
)

// modelsOf are the configurations of all models that may answer: one, or those
// of a route. Where the class of one is another than that of the section model,
// the variables of its own provider are heeded.
func modelsOf(cfg *configs.Resolved) []*configs.Resolved {
	all := cfg.Routed()
	for _, one := range all {
		if one.Model.Class == cfg.Model.Class || one.Model.BaseURL != "" {
			continue
		}
		for _, v := range classVariables[one.Model.Class] {
			if v.key != "model.base_url" {
				continue
			}
			if address, layer := providerURL(v.name); address != "" {
				one.SetBaseURL(layer, address)
			}
		}
	}
	return all
}

// longestName of several models still fits into the name of a folder, as verdicts
// have it, in bytes.
const longestName = 200

// newProviders makes the model that answers, or all of a route. Those with the
// same endpoint and key share what may be asked of it.
func newProviders(cfg *configs.Resolved) (runner.Models, error) {
	governors := &governor.Governors{}
	news := &providerNews{governors: governors}
	if cfg.Model.Route.Kind == "" {
		m, err := newProvider(cfg, governors, news.of(0))
		return oneModel{m, news}, err
	}
	if len(modelName(cfg)) > longestName && cfg.Model.Name == "" {
		return nil, usagef("the names of the models in model.route are too long together to sign predictions; give one for all with -m NAME")
	}
	routed := routedModels{route: cfg.Model.Route, news: news}
	names := map[string]int{}
	for i, one := range modelsOf(cfg) {
		m, err := newProvider(one, governors, news.of(i))
		if err != nil {
			return nil, fmt.Errorf("model.route.models[%d]: %w", i, err)
		}
		name := one.Model.Name
		if names[name]++; names[name] > 1 { // at another address, or asked otherwise
			name = fmt.Sprintf("%s#%d", name, names[name])
		}
		routed.models = append(routed.models, route.Named{Name: name, Model: m})
	}
	_, err := routed.For(datasets.Instance{})
	return routed, err
}

// provider is where news of it come from.
func (o oneModel) provider() *providerNews { return o.news }

// routedModels begin each attempt with a route of its own.
type routedModels struct {
	models []route.Named
	route  configs.Route
	news   *providerNews
}

func (r routedModels) provider() *providerNews { return r.news }

// For implements runner.Models. The choices of a roulette are those of the
// instance, so that they do not depend on which worker takes it, or when.
func (r routedModels) For(in datasets.Instance) (model.Model, error) {
	switch r.route.Kind {
	case "roulette":
		id := sha256.Sum256([]byte(in.ID))
		return route.Roulette(r.models, r.route.Seed^binary.BigEndian.Uint64(id[:])), nil
	case "interleave":
		m, err := route.Interleave(r.models, r.route.Sequence)
		if err != nil {
			return nil, usagef("model.route: %v", err)
		}
		return m, nil
	case "fallback":
		var on []model.Status
		for _, status := range r.route.On {
			on = append(on, model.Status(status))
		}
		return route.Fallback(r.models, on...), nil
	}
	return nil, usagef("model.route.kind: there is no %q", r.route.Kind) // configs knows the others
}
