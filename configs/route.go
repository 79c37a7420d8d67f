package configs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/model"
)

// Route uses several models for the calls of an attempt.
type Route struct {
	// Kind is "roulette" (a random model for each call), "interleave" (in a fixed
	// order) or "fallback" (the next model if one fails, for the rest of the attempt).
	// Empty means a single model.
	Kind string `yaml:"kind" json:"kind"`
	// Seed is the random seed of the roulette. Each instance has its own sequence.
	Seed uint64 `yaml:"seed" json:"seed,omitempty"`
	// Sequence is the order of an interleave: indexes of Models, as a sequence that
	// repeats. Empty means each model in turn.
	Sequence []int `yaml:"sequence" json:"sequence,omitempty"`
	// On lists the error statuses after which a fallback uses the next model; empty means
	// all errors of a provider. Transient errors are retried first.
	On []string `yaml:"on" json:"on,omitempty"`
	// Models override the settings of the section model, one entry for each model.
	Models []Override `yaml:"models" json:"models,omitempty"`
}

// Override is a subset of the keys of Model, with their values.
type Override map[string]any

// Valid values of a route.
var (
	RouteKinds       = []string{"roulette", "interleave", "fallback"}
	fallbackStatuses = []string{
		string(model.AuthenticationError), string(model.RateLimited), string(model.ProviderError),
		string(model.BadRequest), string(model.ContextWindowExceeded), string(model.ContentRefused),
	}
	// sectionOnly lists the settings that an entry of a route cannot override.
	sectionOnly = []string{"route", "summary", "replies", "delay", "price_file"}
)

const (
	routeKey       = "model.route"
	maxRouteModels = 50
	maxSequence    = 10_000
)

// RouteConfigs returns a configuration for each model of a route, in order. The section
// model of each has the settings of that model and no route. Without a route, RouteConfigs
// returns only r.
func (r *Resolved) RouteConfigs() []*Resolved {
	if r.Model.Route.Kind == "" {
		return []*Resolved{r}
	}
	var all []*Resolved
	for i := range r.Model.Route.Models {
		routed, _ := r.routeConfig(i) // validate has reported the error
		all = append(all, routed)
	}
	return all
}

// routeConfig returns the configuration of one model of the route.
func (r *Resolved) routeConfig(i int) (*Resolved, error) {
	return r.withOverride(fmt.Sprintf("%s.models[%d]", routeKey, i), r.Model.Route.Models[i])
}

// withOverride returns the configuration with an override applied to the section model.
// name is the override's key, for errors. If the override changes the class, the
// settings of the old provider are reset, so that they are not sent to the new one.
func (r *Resolved) withOverride(name string, entry Override) (*Resolved, error) {
	result := &Resolved{Config: r.Config, origins: maps.Clone(r.origins), section: name, key: r.key, keyURL: r.keyURL}
	m := &result.Model
	m.Route = Route{}
	m.Kwargs, m.Headers = maps.Clone(m.Kwargs), maps.Clone(m.Headers)
	set := Override{}
	for key, value := range entry {
		if value != nil { // null changes nothing
			set[key] = value
		}
	}
	if class, ok := set["model_class"]; ok && class != m.Class {
		m.BaseURL, m.Headers, m.Cache, m.SendReasoning = "", nil, "", false
		m.APIKeyEnv = cmp.Or(Providers[fmt.Sprint(class)].KeyEnv, Providers["openai"].KeyEnv)
		delete(result.origins, "model.base_url")
	}
	for key := range set { // for Origin
		result.origins["model."+key] = r.origins[name+"."+key]
	}
	if set["price"] != nil || set["price_as"] != nil {
		m.Price, m.PriceAs = model.Price{}, ""
	}
	data, err := yaml.Marshal(set)
	if err == nil {
		err = yaml.Unmarshal(data, m)
	}
	return result, err
}

// validateRoute validates the route and its models.
func (r *Resolved) validateRoute() []error {
	route := r.Model.Route
	switch {
	case route.Kind == "" && (len(route.Models) > 0 || len(route.Sequence) > 0 || len(route.On) > 0):
		return []error{r.errorf(routeKey+".models", "set %s.kind to one of %s", routeKey, strings.Join(RouteKinds, ", "))}
	case route.Kind == "":
		return nil
	}
	errs := slices.Concat(r.oneOf(routeKey+".kind", route.Kind, RouteKinds, ""), r.validateOrder())
	switch n := len(route.Models); {
	case n == 0:
		errs = append(errs, r.errorf(routeKey+".models", "the list of models is empty; set it to, for example, [{model_name: A}, {model_name: B}]"))
	case n > maxRouteModels:
		return append(errs, r.errorf(routeKey+".models", "%d models; at most %d are allowed", n, maxRouteModels))
	case r.Model.Class == "scripted":
		return append(errs, r.errorf("model.model_class", "the scripted model cannot be used with a route, because its replies are fixed for each instance"))
	}
	return append(errs, r.validateRouted()...)
}

// validateRouted validates each model of the route.
func (r *Resolved) validateRouted() []error {
	var errs []error
	section := r.validateModel()
	names := map[string]bool{}
	unpriced := false
	for i, entry := range r.Model.Route.Models {
		routed, err := r.routeConfig(i)
		if err != nil {
			errs = append(errs, r.errorf(routeKey+".models", "number %d: %s", i, firstYAMLError(err)))
			continue
		}
		for _, key := range sectionOnly {
			if _, ok := entry[key]; ok {
				errs = append(errs, routed.errorf("model."+key, "it cannot be set for a model of a route"))
			}
		}
		if routed.Model.Class == "scripted" {
			errs = append(errs, routed.errorf("model.model_class", "the scripted model cannot be part of a route"))
			continue
		}
		names[routed.Model.Name] = true
		unpriced = unpriced || entry["price"] == nil && entry["price_as"] == nil
		for _, err := range routed.validateModel() {
			// Report an error of the section model once, not for each entry.
			if !isReported(section, routed.section, err) {
				errs = append(errs, err)
			}
		}
	}
	const severalModels = "it is the price of one model, but the route has several; set it in each entry"
	if !unpriced || len(names) < 2 {
		return errs
	}
	if p := r.Model.Price; p.IsKnown() && !p.Free {
		errs = append(errs, r.errorf("model.price", severalModels))
	}
	if r.Model.PriceAs != "" {
		errs = append(errs, r.errorf("model.price_as", severalModels))
	}
	return errs
}

// isReported reports whether the errors of the section model include an error of an
// entry.
func isReported(section []error, entry string, err error) bool {
	_, message, _ := strings.Cut(err.Error(), entry+".")
	return slices.ContainsFunc(section, func(e error) bool { return strings.HasSuffix(e.Error(), "model."+message) })
}

// validateOrder validates the settings that select a model.
func (r *Resolved) validateOrder() []error {
	var errs []error
	route := r.Model.Route
	for _, setting := range []struct {
		key, kind string
		set       bool
	}{
		{"seed", "roulette", route.Seed != 0},
		{"sequence", "interleave", len(route.Sequence) > 0},
		{"on", "fallback", len(route.On) > 0},
	} {
		if setting.set && route.Kind != setting.kind {
			errs = append(errs, r.errorf(routeKey+"."+setting.key, "only the kind %s uses it; leave it out", setting.kind))
		}
	}
	if len(route.Sequence) > maxSequence {
		return append(errs, r.errorf(routeKey+".sequence", "%d items; at most %d are allowed", len(route.Sequence), maxSequence))
	}
	for _, n := range route.Sequence {
		if n < 0 || n >= len(route.Models) {
			errs = append(errs, r.errorf(routeKey+".sequence", "%d is not an index of the %d models, which starts at 0", n, len(route.Models)))
			break
		}
	}
	for _, status := range route.On {
		errs = append(errs, r.oneOf(routeKey+".on", status, fallbackStatuses, "")...)
	}
	return errs
}
