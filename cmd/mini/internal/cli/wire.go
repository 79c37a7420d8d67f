package cli

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
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/governor"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/runner"
)

// newModels makes what answers, and finds out before anything runs whether it
// can answer for every instance.
func newModels(cfg *configs.Resolved, isDemo bool, rows []datasets.Instance) (runner.Models, error) {
	models, err := newAnswering(cfg, isDemo, rows)
	if err != nil {
		return nil, err
	}
	return withSummaries(cfg, models, rows)
}

func newAnswering(cfg *configs.Resolved, isDemo bool, rows []datasets.Instance) (runner.Models, error) {
	switch cfg.Model.Class {
	case "scripted":
		script, err := loadScript(cfg, isDemo)
		if err != nil {
			return nil, err
		}
		for _, in := range rows {
			if _, err := script.For(in.ID); err != nil {
				return nil, before(err)
			}
		}
		speaks, err := cfg.Agent.Speaks()
		if err != nil {
			return nil, cfg.Locate(err)
		}
		return scriptedModels{script, speaks, duration(cfg.Model.Delay)}, nil
	default:
		return newProviders(cfg)
	}
}

// wrongReplies stands for the demo's replies that are wrong once, in place of a
// file.
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
		return wrong.Over(right), nil
	case path == "":
		return nil, usagef("the scripted model needs its replies: -c model.replies=FILE (YAML or JSON, or a trajectory)")
	}
	script, err := scripted.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usagef("model.replies: %s: no such file; it holds the replies, as YAML or JSON, or is a trajectory", path)
	}
	if err != nil {
		return nil, before(err)
	}
	return script, nil
}

// newProvider is a model behind an API: its provider, what all workers together
// may ask of that, and what is tried again around it.
func newProvider(cfg *configs.Resolved, all *governor.Governors, changed func(governor.State)) (model.Model, error) {
	m := cfg.Model
	if m.Name == "" {
		return nil, usagef("no model is named; use -m NAME, or --local for a server of this machine; mini config setup keeps one")
	}
	key, err := keyOf(cfg) // a server of one's own may need none
	if err != nil {
		return nil, err
	}
	if key == "" && m.BaseURL == "" {
		return nil, usagef("no key: set the environment variable %s, or -c model.base_url=URL for a server that needs none", m.APIKeyEnv)
	}
	known, err := factsOf(cfg)
	if err != nil {
		return nil, err
	}
	m.Price = known.Price
	client, err := newClient(m, key, cfg.Agent.Tools())
	if err != nil {
		return nil, before(err)
	}
	if key == "" {
		client = keyless{client, m.APIKeyEnv}
	}
	wait := duration(m.MaxWait)
	g := all.For(baseURL(m), key, governor.Config{
		Requests: m.RequestsPerMinute, Tokens: m.TokensPerMinute, Concurrent: m.MaxConcurrent, MaxPause: wait, Changed: changed,
	})
	return retry.New(g.Model(client), retry.Policy{MaxTries: m.MaxTries, MaxWait: wait}), nil
}

// newClient makes what asks the provider once.
func newClient(m configs.Model, key string, tools []model.Definition) (model.Model, error) {
	if m.Class == "anthropic" {
		return anthropic.New(anthropic.Config{
			Name: m.Name, BaseURL: m.BaseURL, APIKey: key, Kwargs: m.Kwargs, Headers: m.Headers, Stream: m.Stream,
			Timeout: duration(m.Timeout), Idle: duration(m.StreamIdle), Price: m.Price, Cache: m.Cache, Tools: tools,
		})
	}
	return openai.New(openai.Config{
		Name: m.Name, BaseURL: m.BaseURL, APIKey: key, Kwargs: m.Kwargs, Headers: m.Headers, Stream: m.Stream, SendReasoning: m.SendReasoning,
		Timeout: duration(m.Timeout), Idle: duration(m.StreamIdle), Price: m.Price, Tools: tools,
	})
}

// keyless is a model that is asked without a key. Where its server wants one, it
// says what to set.
type keyless struct {
	model.Model
	variable string
}

// Query implements model.Model.
func (m keyless) Query(ctx context.Context, history []model.Message) (model.Reply, error) {
	reply, err := m.Model.Query(ctx, history)
	if e, ok := errors.AsType[*model.Error](err); ok && e.Status == model.AuthenticationError {
		told := *e
		told.Hint = "no key was sent: set the environment variable " + m.variable
		return reply, &told
	}
	return reply, err
}

// modelName is what predictions are signed with: the models of a route all sign,
// unless they have a name together.
func modelName(cfg *configs.Resolved) string {
	if cfg.Model.Name != "" {
		return cfg.Model.Name
	}
	var names []string
	for _, one := range cfg.Routed() {
		if name := cmp.Or(one.Model.Name, one.Model.Class); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// oneModel answers for every instance.
type oneModel struct {
	m    model.Model
	news *providerNews
}

// For implements runner.Models.
func (o oneModel) For(datasets.Instance) (model.Model, error) { return o.m, nil }

// scriptedModels begin each attempt with the first reply. What the replies ask
// for is said in the protocol of the run.
type scriptedModels struct {
	script *scripted.Script
	speaks protocol.Protocol
	delay  time.Duration
}

// For implements runner.Models.
func (s scriptedModels) For(in datasets.Instance) (model.Model, error) {
	m, err := s.script.For(in.ID)
	if err != nil {
		return nil, fmt.Errorf("scripted model: %w", err)
	}
	m = restated{m, s.speaks}
	if s.delay > 0 {
		return slowModel{m, s.delay}, nil
	}
	return m, nil
}

// restated says what the model says in the words of a protocol.
type restated struct {
	model.Model
	speaks protocol.Protocol
}

// Query implements model.Model.
func (m restated) Query(ctx context.Context, history []model.Message) (model.Reply, error) {
	reply, err := m.Model.Query(ctx, history)
	if err != nil {
		return reply, err
	}
	reply.Message = protocol.Restate(m.speaks, reply.Message)
	switch calls := len(reply.Message.Calls) > 0; {
	case calls && reply.Finish == model.FinishStop:
		reply.Finish = model.FinishTools
	case !calls && reply.Finish == model.FinishTools:
		reply.Finish = model.FinishStop
	}
	return reply, nil
}

// slowModel takes its time for a reply, as a model behind an API does.
type slowModel struct {
	model.Model
	delay time.Duration
}

// Query implements model.Model.
func (m slowModel) Query(ctx context.Context, history []model.Message) (model.Reply, error) {
	t := time.NewTimer(m.delay)
	defer t.Stop()
	select {
	case <-t.C:
		return m.Model.Query(ctx, history)
	case <-ctx.Done():
		return model.Reply{}, context.Cause(ctx)
	}
}
