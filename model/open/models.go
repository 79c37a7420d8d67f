// Package modelopen opens the models that a configuration names: clients of
// providers with retries, rate limits and prices, routes of several models, or
// scripts.
package modelopen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
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
	case path == "" && isDemo:
		return scripted.Parse("demo/replies.yaml", demo.Replies())
	case path == wrongReplies && isDemo:
		right, err := scripted.Parse("demo/replies.yaml", demo.Replies())
		if err != nil {
			return nil, err
		}
		wrong, err := scripted.Parse("demo/replies-wrong.yaml", demo.WrongReplies())
		if err != nil {
			return nil, err
		}
		return wrong.WithFallback(right), nil
	case path == "":
		return nil, usage.Errorf("the scripted model has no replies; set -c model.replies=FILE (YAML or JSON, or a trajectory)")
	}
	script, err := scripts.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage.Errorf("model.replies: %s: no such file; name a file of replies (YAML or JSON) or a trajectory", path)
	}
	if err != nil {
		return nil, usage.Wrap(err)
	}
	return script, nil
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
			Timeout: configs.Duration(c.Timeout), IdleTimeout: configs.Duration(c.StreamIdle),
		})
	} else if client, err = newClient(c, key, hint, cfg.Agent.ToolDefinitions()); err != nil {
		return nil, usage.Wrap(err)
	}
	maxWait := configs.Duration(c.MaxWait)
	limiter := m.Limiters.For(baseURL(c), key, ratelimit.Config{
		RequestsPerMinute: c.RequestsPerMinute, TokensPerMinute: c.TokensPerMinute, MaxConcurrent: c.MaxConcurrent,
		MaxPause: maxWait, OnChange: m.onChange,
	})
	return retry.New(limiter.Wrap(client), retry.Policy{MaxTries: c.MaxTries, MaxWait: maxWait}), nil
}

// newClient returns the client of a provider, which sends one request per Query.
func newClient(m configs.Model, key, hint string, tools []model.ToolDefinition) (model.Model, error) {
	if m.Class == "anthropic" {
		return anthropic.New(anthropic.Config{
			Name: m.Name, BaseURL: m.BaseURL, APIKey: key, KeyHint: hint, Kwargs: m.Kwargs, Headers: m.Headers, Stream: m.Stream,
			Timeout: configs.Duration(m.Timeout), IdleTimeout: configs.Duration(m.StreamIdle), Price: m.Price, Cache: m.Cache, Tools: tools,
		})
	}
	return openai.New(openai.Config{
		Name: m.Name, BaseURL: m.BaseURL, APIKey: key, KeyHint: hint, Kwargs: m.Kwargs, Headers: m.Headers, Stream: m.Stream, SendReasoning: m.SendReasoning,
		Timeout: configs.Duration(m.Timeout), IdleTimeout: configs.Duration(m.StreamIdle), Price: m.Price, Tools: tools,
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
