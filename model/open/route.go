package modelopen

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/route"
)

// maxNameLength is the maximum length of the joined names of a route, in bytes:
// the folder of the verdicts has this name.
const maxNameLength = 200

// newRoute opens the models of a route. Each attempt gets its own route.
func (m *Models) newRoute(cfg *configs.Resolved) (modelFunc, error) {
	if len(Name(cfg)) > maxNameLength && cfg.Model.Name == "" {
		return nil, usage.Errorf("the joined model names of model.route are too long for predictions; pass a common name with -m NAME")
	}
	var all []route.Named
	names := map[string]int{}
	for i, modelCfg := range configs.ModelConfigs(cfg) {
		provider, err := m.provider(modelCfg)
		if err != nil {
			return nil, fmt.Errorf("model.route.models[%d]: %w", i, err)
		}
		name := modelCfg.Model.Name
		if names[name]++; names[name] > 1 { // the same model with other settings
			name = fmt.Sprintf("%s#%d", name, names[name])
		}
		all = append(all, route.Named{Name: name, Model: provider})
	}
	open := func(in datasets.Instance) (model.Model, error) { return newRouteModel(cfg.Model.Route, all, in) }
	_, err := open(datasets.Instance{})
	return open, err
}

// newRouteModel returns the route of an attempt. The choices of a roulette
// depend only on the seed and the instance, not on workers or time.
func newRouteModel(r configs.Route, models []route.Named, in datasets.Instance) (model.Model, error) {
	switch r.Kind {
	case "roulette":
		id := sha256.Sum256([]byte(in.ID))
		return route.Roulette(models, r.Seed^binary.BigEndian.Uint64(id[:])), nil
	case "interleave":
		m, err := route.Interleave(models, r.Sequence)
		if err != nil {
			return nil, usage.Errorf("model.route: %v", err)
		}
		return m, nil
	}
	var on []model.Status // the remaining kind is fallback
	for _, status := range r.On {
		on = append(on, model.Status(status))
	}
	return route.Fallback(models, on...), nil
}
