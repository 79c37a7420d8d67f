// Package modelopen opens the models that a configuration names: clients of
// providers with retries, rate limits and prices, routes of several models, or
// scripts.
package modelopen

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/ratelimit"
	"github.com/minibench/mini/model/raw"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/model/route"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories/scripts"
)

// modelFunc returns the model for an attempt on an instance.
type modelFunc func(in datasets.Instance) (model.Model, error)

// Models returns models for attempts, and for summaries of conversations.
type Models struct {
	*Limits
	forInstance modelFunc
	forSummary  modelFunc // nil if the attempt's own model makes summaries
}

// For implements runner.Models.
func (m *Models) For(in datasets.Instance) (model.Model, error) { return m.forInstance(in) }

// SummaryModel returns the model for summaries; nil if the attempt's own model
// makes them.
func (m *Models) SummaryModel(in datasets.Instance) (model.Model, error) {
	if m.forSummary == nil {
		return nil, nil //nolint:nilnil // as the interface says
	}
	return m.forSummary(in)
}

// New opens the models. It returns an error if one of them cannot work on an
// instance of rows, for example because a script has no replies for it. Models with
// the same endpoint and key share their rate limits if they are opened with the same
// limits; nil stands for limits of their own.
func New(cfg *configs.Resolved, isDemo bool, rows []datasets.Instance, limits *Limits) (*Models, error) {
	if limits == nil {
		limits = &Limits{}
	}
	m := &Models{Limits: limits}
	var err error
	if m.forInstance, err = m.newForInstance(cfg, isDemo, rows); err != nil {
		return nil, err
	}
	if summaryCfg := configs.SummaryModelConfig(cfg); summaryCfg != nil {
		m.forSummary, err = m.newForInstance(summaryCfg, false, rows)
	}
	return m, err
}

// newForInstance opens the model of cfg: a scripted model, a route or a provider.
func (m *Models) newForInstance(cfg *configs.Resolved, isDemo bool, rows []datasets.Instance) (modelFunc, error) {
	switch {
	case !cfg.UsesModel():
		return func(datasets.Instance) (model.Model, error) { return nil, nil }, nil //nolint:nilnil // the agent asks none
	case cfg.UsesOtherAgent() && (cfg.Model.Class == "scripted" || cfg.Model.Route.Kind != ""):
		return nil, usage.Errorf("the agent %.60s needs the API of a provider, not a script or a route; set -m NAME", cfg.Agent.Class)
	case cfg.Model.Class == "scripted":
		return newScripted(cfg, isDemo, rows)
	case cfg.Model.Route.Kind != "":
		return m.newRoute(cfg)
	}
	provider, err := m.provider(cfg)
	return func(datasets.Instance) (model.Model, error) { return provider, nil }, err
}

// newScripted opens a scripted model. Each attempt begins with the first reply.
// The model translates the replies into the run's protocol.
func newScripted(cfg *configs.Resolved, isDemo bool, rows []datasets.Instance) (modelFunc, error) {
	script, err := loadScript(cfg, isDemo)
	if err != nil {
		return nil, err
	}
	for _, in := range rows {
		if _, err := script.For(in.ID); err != nil {
			return nil, usage.Wrap(err)
		}
	}
	p, err := cfg.Agent.ParseProtocol()
	if err != nil {
		return nil, cfg.Locate(err)
	}
	return func(in datasets.Instance) (model.Model, error) {
		m, err := script.For(in.ID)
		if err != nil {
			return nil, fmt.Errorf("scripted model: %w", err)
		}
		return translator{m, p, configs.Duration(cfg.Model.Delay)}, nil
	}, nil
}

// wrongReplies is the value of model.replies that selects the demo's script with wrong
// replies for one instance.
const wrongReplies = "wrong"

func loadScript(cfg *configs.Resolved, isDemo bool) (*scripted.Script, error) {
	path := cfg.Model.Replies
	switch {
	case isDemo && (path == "" || path == wrongReplies):
		script, err := scripted.Parse("demo/replies.yaml", demo.Replies())
		if err != nil || path == "" {
			return script, err
		}
		wrong, err := scripted.Parse("demo/replies-wrong.yaml", demo.WrongReplies())
		if err != nil {
			return nil, err
		}
		return wrong.WithFallback(script), nil
	case path == "":
		return nil, usage.Errorf("the scripted model has no replies; set -c model.replies=FILE (YAML or JSON, or a trajectory)")
	}
	script, err := scripts.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage.Errorf("model.replies: %s: no such file; name a file of replies (YAML or JSON) or a trajectory", path)
	}
	return script, usage.Wrap(err)
}

// provider opens the model of a provider, with rate limits and retries. Models
// with the same endpoint and key share their limits.
func (m *Models) provider(cfg *configs.Resolved) (model.Model, error) {
	c := cfg.Model
	if c.Name == "" {
		return nil, usage.Errorf("no model is named; pass -m NAME, or --local for a server on this machine, or run mini config setup")
	}
	key, err := configs.ModelKey(cfg) // local servers may need no key
	if err != nil {
		return nil, err
	}
	if key == "" && c.BaseURL == "" {
		return nil, usage.Errorf("no key: set the environment variable %s, or -c model.base_url=URL for a server that needs none", c.APIKeyEnv)
	}
	facts, err := ModelFacts(cfg)
	if err != nil {
		return nil, err
	}
	c.Price = facts.Price
	hint := "check the key in " + c.APIKeyEnv + ", its rights and the account's credit; " + configs.ReplaceKey(c.APIKeyEnv)
	if key == "" {
		hint = "no key was sent: set the environment variable " + c.APIKeyEnv
	}
	var client model.Model
	if cfg.UsesOtherAgent() {
		client = raw.New(raw.Config{
			BaseURL: baseURL(c), Key: key, KeyHint: hint, Headers: c.Headers, Price: c.Price,
			Timeout: configs.Duration(c.Timeout), IdleTimeout: configs.Duration(c.StreamIdle), HTTPClient: m.HTTP,
		})
	} else if client, err = newClient(c, key, hint, cfg.Agent.ToolDefinitions(), m.HTTP); err != nil {
		return nil, usage.Wrap(err)
	}
	maxWait := configs.Duration(c.MaxWait)
	limiter := m.Limiters.For(baseURL(c), key, ratelimit.Config{
		RequestsPerMinute: c.RequestsPerMinute, TokensPerMinute: c.TokensPerMinute, MaxConcurrent: c.MaxConcurrent,
		MaxPause: maxWait, OnChange: m.onChange,
	})
	return retry.New(limiter.Wrap(client), retry.Policy{MaxTries: c.MaxTries, MaxWait: maxWait}), nil
}

// Try sends a model one short request, without retries, to see whether it answers.
func Try(ctx context.Context, m configs.Model, key string) (model.Reply, error) {
	m.Stream = false
	client, err := newClient(m, key, "check the key", nil, nil)
	if err != nil {
		return model.Reply{}, err
	}
	return client.Query(ctx, []model.Message{{Role: model.User, Content: "Reply with the word ok."}})
}

// newClient returns the client of a provider, which sends one request per Query. httpClient may be nil.
func newClient(m configs.Model, key, hint string, tools []model.ToolDefinition, httpClient *http.Client) (model.Model, error) {
	if m.Class == "anthropic" {
		return anthropic.New(anthropic.Config{
			Name: m.Name, BaseURL: m.BaseURL, APIKey: key, KeyHint: hint, Kwargs: m.Kwargs, Headers: m.Headers, Stream: m.Stream,
			Timeout: configs.Duration(m.Timeout), IdleTimeout: configs.Duration(m.StreamIdle), Price: m.Price, Cache: m.Cache, Tools: tools,
			HTTPClient: httpClient,
		})
	}
	return openai.New(openai.Config{
		Name: m.Name, BaseURL: m.BaseURL, APIKey: key, KeyHint: hint, Kwargs: m.Kwargs, Headers: m.Headers, Stream: m.Stream, SendReasoning: m.SendReasoning,
		Timeout: configs.Duration(m.Timeout), IdleTimeout: configs.Duration(m.StreamIdle), Price: m.Price, Tools: tools,
		Tokens: m.Tokens, HTTPClient: httpClient,
	})
}

// Name returns the model name for predictions: the configured one, or else the
// distinct names of a route's models, joined by "+". An agent without a model stands for
// itself.
func Name(cfg *configs.Resolved) string {
	if !cfg.UsesModel() {
		return cfg.Agent.Class
	}
	if cfg.Model.Name != "" {
		return cfg.Model.Name
	}
	var names []string
	for _, routed := range cfg.RouteConfigs() {
		if name := cmp.Or(routed.Model.Name, routed.Model.Class); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// translator translates the replies of a scripted model into a protocol, and
// delays them.
type translator struct {
	model.Model
	protocol protocol.Protocol
	delay    time.Duration
}

// Query implements model.Model.
func (m translator) Query(ctx context.Context, history []model.Message) (model.Reply, error) {
	if m.delay > 0 {
		select {
		case <-time.After(m.delay):
		case <-ctx.Done():
			return model.Reply{}, context.Cause(ctx)
		}
	}
	reply, err := m.Model.Query(ctx, history)
	if err != nil {
		return reply, err
	}
	reply.Message = protocol.Translate(m.protocol, reply.Message)
	switch calls := len(reply.Message.ToolCalls) > 0; {
	case calls && reply.FinishReason == model.FinishStop:
		reply.FinishReason = model.FinishToolCalls
	case !calls && reply.FinishReason == model.FinishToolCalls:
		reply.FinishReason = model.FinishStop
	}
	return reply, nil
}

// Limits are the rate limits of all endpoints. The zero value is ready to use.
type Limits struct {
	Limiters ratelimit.Limiters
	// HTTP is the HTTP client of all models, set before they are opened; nil gives each its own.
	HTTP *http.Client

	mu   sync.Mutex
	emit func(ratelimit.State)
}

// OnLimits sets the callback that gets the combined state of the rate limiters when one of
// them changes.
func (l *Limits) OnLimits(emit func(ratelimit.State)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emit = emit
}

// onChange calls the callback with the combined state of all endpoints: the
// sums of their limits and requests, and the latest end of a pause and of a used-up
// quota. If an endpoint in use has no limit, the sum of the limits is 0.
func (l *Limits) onChange(ratelimit.State) {
	l.mu.Lock()
	emit := l.emit
	l.mu.Unlock()
	if emit == nil {
		return
	}
	var sum ratelimit.State
	bounded := true
	for _, e := range l.Limiters.States() {
		s := e.State
		bounded = bounded && (s.Limit > 0 || s.InFlight+s.Waiting == 0)
		sum.Limit += s.Limit
		sum.InFlight += s.InFlight
		sum.Waiting += s.Waiting
		if s.QuotaFullUntil.After(sum.QuotaFullUntil) {
			sum.QuotaFullUntil = s.QuotaFullUntil
		}
		if s.PausedUntil.After(sum.PausedUntil) {
			sum.PausedUntil = s.PausedUntil
		}
	}
	if !bounded {
		sum.Limit = 0
	}
	emit(sum)
}

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
