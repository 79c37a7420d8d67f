package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/model"
)

// Route lets several models answer the calls of an attempt.
type Route struct {
	// Kind is "roulette" (one at random for each call), "interleave" (in a fixed
	// order) or "fallback" (the next where one fails, for the rest of the
	// attempt). Empty means that there is one model only.
	Kind string `yaml:"kind" json:"kind"`
	// Seed is that of the roulette. Each instance has choices of its own.
	Seed uint64 `yaml:"seed" json:"seed,omitempty"`
	// Sequence is the order of an interleave, by numbers of Models from 0, again
	// from its beginning when it ends; empty takes each in turn.
	Sequence []int `yaml:"sequence" json:"sequence,omitempty"`
	// On are the failures that a fallback hands to the next model, as statuses;
	// empty means all that are a provider's. What may pass is tried again first.
	On []string `yaml:"on" json:"on,omitempty"`
	// Models are the settings that differ from those of the section model.
	Models []Override `yaml:"models" json:"models,omitempty"`
}

// Override is some of the keys of Model, and their values.
type Override map[string]any

// What a route may be, the failures that may be handed on, and bounds.
var (
	RouteKinds = []string{"roulette", "interleave", "fallback"}
	handedOn   = []string{
		string(model.AuthenticationError), string(model.RateLimited), string(model.ProviderError),
		string(model.BadRequest), string(model.ContextWindowExceeded), string(model.ContentRefused),
	}
	// unrouted are settings that no model of a route has to itself.
	unrouted = []string{"route", "summary", "replies", "delay", "price_file"}
)

const (
	routeKey    = "model.route"
	maxRouted   = 50
	maxSequence = 10_000
)

// KeyEnv is the variable that the key for a class of models is in, where nobody
// says otherwise.
func KeyEnv(class string) string {
	if class == "anthropic" {
		return "ANTHROPIC_API_KEY"
	}
	return "OPENAI_API_KEY"
}

// Routed are the configurations of the models of a route, in its order; the
// configuration itself where there is no route. In each the section model has the
// settings of that model, and no route.
func (r *Resolved) Routed() []*Resolved {
	if r.Model.Route.Kind == "" {
		return []*Resolved{r}
	}
	var all []*Resolved
	for i := range r.Model.Route.Models {
		one, _ := r.routed(i) // validate has seen to it
		all = append(all, one)
	}
	return all
}

// routed lays one entry over the section. What belongs to a provider is not
// handed to another one: another class begins with its own.
func (r *Resolved) routed(i int) (*Resolved, error) {
	return r.overlaid(fmt.Sprintf("%s.models[%d]", routeKey, i), r.Model.Route.Models[i])
}

// overlaid is the configuration with some keys of the section model set by an
// entry, which errors name.
func (r *Resolved) overlaid(name string, entry Override) (*Resolved, error) {
	one := &Resolved{Config: r.Config, origins: maps.Clone(r.origins), entry: name}
	m := &one.Model
	m.Route = Route{}
	m.Kwargs, m.Headers = maps.Clone(m.Kwargs), maps.Clone(m.Headers)
	set := Override{}
	for key, value := range entry {
		if value != nil { // which changes nothing
			set[key] = value
		}
	}
	if class, ok := set["model_class"]; ok && class != m.Class {
		m.BaseURL, m.Headers, m.Cache, m.SendReasoning = "", nil, "", false
		m.APIKeyEnv = KeyEnv(fmt.Sprint(class))
		delete(one.origins, "model.base_url")
	}
	for key := range set { // Origin says where the values of this model are from
		one.origins["model."+key] = r.origins[name+"."+key]
	}
	if set["price"] != nil || set["price_as"] != nil {
		m.Price, m.PriceAs = model.Price{}, ""
	}
	data, err := yaml.Marshal(set)
	if err == nil {
		err = yaml.Unmarshal(data, m)
	}
	return one, err
}

// validateRoute holds the models of a route to what one model is held to.
func (r *Resolved) validateRoute() []error {
	route := r.Model.Route
	switch {
	case route.Kind == "" && (len(route.Models) > 0 || len(route.Sequence) > 0 || len(route.On) > 0):
		return []error{r.errorf(routeKey+".models", "a route of which kind? Set %s.kind to one of %s", routeKey, strings.Join(RouteKinds, ", "))}
	case route.Kind == "":
		return nil
	}
	errs := slices.Concat(r.class(routeKey+".kind", route.Kind, RouteKinds, ""), r.validateOrder())
	switch n := len(route.Models); {
	case n == 0:
		errs = append(errs, r.errorf(routeKey+".models", "there is none; a route is a list of models, as [{model_name: A}, {model_name: B}]"))
	case n > maxRouted:
		return append(errs, r.errorf(routeKey+".models", "%d are more than %d", n, maxRouted))
	case r.Model.Class == "scripted":
		return append(errs, r.errorf("model.model_class", "the scripted model has its replies written down for each instance, and takes no route"))
	}
	return append(errs, r.validateRouted()...)
}

func (r *Resolved) validateRouted() []error {
	var errs []error
	section := r.validateModel()
	names := map[string]bool{}
	unpriced := false
	for i, entry := range r.Model.Route.Models {
		one, err := r.routed(i)
		if err != nil {
			errs = append(errs, r.errorf(routeKey+".models", "number %d: %s", i, yamlReason(err)))
			continue
		}
		for _, key := range unrouted {
			if _, ok := entry[key]; ok {
				errs = append(errs, one.errorf("model."+key, "it is none of a model in a route"))
			}
		}
		if one.Model.Class == "scripted" {
			errs = append(errs, one.errorf("model.model_class", "the scripted model takes no part in a route"))
			continue
		}
		names[one.Model.Name] = true
		unpriced = unpriced || entry["price"] == nil && entry["price_as"] == nil
		for _, err := range one.validateModel() {
			// What is wrong with the section is said of it, and once.
			if !saidOf(section, one.entry, err) {
				errs = append(errs, err)
			}
		}
	}
	const several = "it is the price of one model, and the route has several; set it in the entry of each"
	if !unpriced || len(names) < 2 {
		return errs
	}
	if p := r.Model.Price; p.Known() && !p.Free {
		errs = append(errs, r.errorf("model.price", several))
	}
	if r.Model.PriceAs != "" {
		errs = append(errs, r.errorf("model.price_as", several))
	}
	return errs
}

// saidOf says whether a mistake of an entry is among those of the section.
func saidOf(section []error, entry string, err error) bool {
	_, said, _ := strings.Cut(err.Error(), entry+".")
	return slices.ContainsFunc(section, func(e error) bool { return strings.HasSuffix(e.Error(), "model."+said) })
}

// validateOrder is about which model is asked when.
func (r *Resolved) validateOrder() []error {
	var errs []error
	route := r.Model.Route
	for _, only := range []struct {
		key, kind string
		set       bool
	}{
		{"seed", "roulette", route.Seed != 0},
		{"sequence", "interleave", len(route.Sequence) > 0},
		{"on", "fallback", len(route.On) > 0},
	} {
		if only.set && route.Kind != only.kind {
			errs = append(errs, r.errorf(routeKey+"."+only.key, "it is for the kind %s; leave it out", only.kind))
		}
	}
	if len(route.Sequence) > maxSequence {
		return append(errs, r.errorf(routeKey+".sequence", "%d numbers are more than %d", len(route.Sequence), maxSequence))
	}
	for _, n := range route.Sequence {
		if n < 0 || n >= len(route.Models) {
			errs = append(errs, r.errorf(routeKey+".sequence", "%d is none of the %d models, which begin with 0", n, len(route.Models)))
			break
		}
	}
	for _, status := range route.On {
		errs = append(errs, r.class(routeKey+".on", status, handedOn, "")...)
	}
	return errs
}

// maxWindow is far above what any model takes.
const maxWindow = 1 << 40

func (r *Resolved) validateWindow() []error {
	var errs []error
	m := r.Model
	if m.Window < 0 || m.Window > maxWindow {
		errs = append(errs, r.errorf("model.context_window", "%d is no number of tokens; 0 means what is known of the model", m.Window))
	}
	if m.Reserve < 0 || m.Reserve > maxWindow {
		errs = append(errs, r.errorf("model.context_reserve", "%d is no number of tokens; 0 means what a reply may need", m.Reserve))
	}
	if m.Window > 0 && m.Reserve >= m.Window {
		errs = append(errs, r.errorf("model.context_reserve", "%d leaves nothing of the window of %d tokens", m.Reserve, m.Window))
	}
	return errs
}
