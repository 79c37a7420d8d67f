package setup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/images/web"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/dialect"
	modelopen "github.com/minibench/mini/model/open"

	"github.com/minibench/mini/agent"

	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/harbor"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/harborrun"
)

// AgentClasses are the values of agent.agent_class.
var AgentClasses = append([]string{"mini", configs.AgentOracle, configs.AgentNop}, configs.OtherAgents()...)

// NewBatchAgent returns the agent of a batch: the one that agent.agent_class names. The
// rows are those of NewAgent.
func NewBatchAgent(cfg *configs.Resolved, rows []datasets.Instance) (runner.Agent, error) {
	switch name := cfg.Agent.Class; name {
	case "":
		return NewAgent(cfg, rows)
	case configs.AgentOracle:
		return harborrun.Oracle{}, nil
	case configs.AgentNop:
		return harborrun.Nop{}, nil
	default:
		data, err := configs.AgentDefinition(name)
		if err == nil {
			return newOtherAgent(cfg, rows, data)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, usage.Wrap(err)
		}
		text := fmt.Sprintf("%.60q is neither a file nor one of %s", name, strings.Join(AgentClasses, ", "))
		if best := configs.ClosestName(name, AgentClasses); best != "" {
			text += "; did you mean " + best + "?"
		}
		return nil, cfg.KeyErrors(configs.KeyError{Key: "agent.agent_class", Text: text})
	}
}

// newOtherAgent returns the agent of a definition.
func newOtherAgent(cfg *configs.Resolved, rows []datasets.Instance, data []byte) (runner.Agent, error) {
	def, err := external.Parse(data)
	if err != nil {
		return nil, usage.Errorf("agent.agent_class: %.200s: %v", cfg.Agent.Class, err)
	}
	if def.Name == "" {
		def.Name = strings.TrimSuffix(filepath.Base(cfg.Agent.Class), filepath.Ext(cfg.Agent.Class))
	}
	dialects := []string{"chat", "responses", "gemini"} // of servers with the API of OpenAI, if they have them
	if cfg.Model.Class == "anthropic" {
		dialects = []string{"messages"}
	}
	if def.Dialect != "" && !slices.Contains(dialects, def.Dialect) {
		return nil, usage.Errorf("the agent %.60s asks in the dialect %s, which model.model_class %s does not have; set model.model_class and model.base_url to a provider of that dialect",
			def.Name, def.Dialect, cfg.Model.Class)
	}
	if d := dialect.ByName(def.Dialect); d != nil && cfg.Model.Tokens && !dialect.HasTokens(d) {
		return nil, usage.Errorf("model.tokens: the agent %.60s asks in the dialect %s, in which servers send no token ids; leave it out, or use an agent of the dialect chat",
			def.Name, def.Dialect)
	}
	if def.Install != "" && envopen.IsHostClass(cfg.Environment.Class) {
		return nil, usage.Errorf("agent.agent_class: %.200s: install needs containers; leave --environment-class out, or use folder", cfg.Agent.Class)
	}
	dir, hash, err := mountFolder(cfg, def.Folder)
	if err != nil {
		return nil, usage.Errorf("agent.agent_class: %.200s: folder: %v", cfg.Agent.Class, err)
	}
	cfg.Agent.PatchExclude = append(slices.Clip(cfg.Agent.PatchExclude), def.Exclude...)
	own, err := newAgent(cfg, rows)
	if err != nil {
		return nil, err
	}
	return external.New(own, def, external.Config{ModelName: cfg.Model.Name, Dialects: dialects, Dir: dir, FolderSHA256: hash, Tokens: cfg.Model.Tokens}), nil
}

// agentDir is where sandboxes have the folder of an agent.
const agentDir = "/mini-agent"

// mountFolder adds the folder of a definition to the mounts of sandboxes. It returns where
// commands find it, and the hash of its content; "" if there is none.
func mountFolder(cfg *configs.Resolved, folder string) (dir, hash string, err error) {
	if folder == "" {
		return "", "", nil
	}
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(filepath.Dir(cfg.Agent.Class), folder)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", "", err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return "", "", err
	}
	info, err := os.Stat(folder)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", folder)
	}
	if err == nil {
		hash, err = harbor.HashFolder(folder)
	}
	if err != nil || cfg.Environment.Class == "local" {
		return folder, hash, err
	}
	mount := folder + ":" + agentDir + ":ro"
	if _, err := configs.ParseMount(mount); err != nil {
		return "", "", err
	}
	if !slices.Contains(cfg.Environment.Mounts, mount) { // the configuration may be that of an earlier run
		cfg.Environment.Mounts = append(slices.Clip(cfg.Environment.Mounts), mount)
	}
	return agentDir, hash, nil
}

// NewAgent returns the agent of a configuration. It renders the prompts for every row to find
// template errors before the first model call.
func NewAgent(cfg *configs.Resolved, rows []datasets.Instance) (*agent.Agent, error) {
	if name := cfg.Agent.Class; name != "" {
		return nil, usage.Errorf("agent.agent_class: %.60s runs only in a batch; leave it out, or run mini bench --agent NAME", name)
	}
	return newAgent(cfg, rows)
}

// newAgent is NewAgent for any class of agent: others use the limits and the settings of
// the diff.
func newAgent(cfg *configs.Resolved, rows []datasets.Instance) (*agent.Agent, error) {
	if err := setModelFacts(cfg); err != nil {
		return nil, err
	}
	a, err := agent.New(cfg.Agent)
	if err != nil {
		return nil, cfg.Locate(err)
	}
	for _, in := range rows {
		if err := a.CheckTask(agent.Task{Text: in.ProblemStatement, Instance: in.Fields()}); err != nil {
			return nil, fmt.Errorf("%w (instance %s)", cfg.Locate(err), in.ID)
		}
	}
	return a, nil
}

// The default reserve for a reply is defaultReserve tokens, but at most
// 1/maxReserveFraction of the window.
const (
	defaultReserve     = 4096
	maxReserveFraction = 10
)

// setModelFacts sets what the agent knows about its models: the context window, and whether all of them
// accept images. If there are several models, the window is the one with the fewest tokens besides the
// reserve, or the most if the route falls back on ContextWindowExceeded. If no window is known, or with this
// fallback one is unknown, there is no limit.
func setModelFacts(cfg *configs.Resolved) error {
	var chosen *agent.ContextWindow
	isUnknown, largest := false, slices.Contains(cfg.Model.Route.On, string(model.ContextWindowExceeded))
	images := &cfg.Agent.Images
	images.Supported = true
	for _, one := range configs.ModelConfigs(cfg) {
		facts, err := modelopen.ModelFacts(one)
		if err != nil {
			return err
		}
		m := one.Model
		images.Supported = images.Supported && (m.Images == "yes" || m.Images != "no" && facts.AcceptsImages)
		w := agent.ContextWindow{Tokens: cmp.Or(m.ContextWindow, facts.ContextWindow)}
		if w.Tokens == 0 {
			isUnknown = true
			continue
		}
		if w.Reserve = replyReserve(m, w.Tokens); w.Reserve >= w.Tokens {
			return usage.Errorf("model.context_reserve: %d leaves nothing of the window of %d tokens that %.80s has", w.Reserve, w.Tokens, m.Name)
		}
		if chosen == nil || (w.Tokens-w.Reserve > chosen.Tokens-chosen.Reserve) == largest {
			chosen = &w
		}
	}
	if chosen != nil && (!largest || !isUnknown) { // the unknown window may be the largest
		cfg.Agent.Window = *chosen
	}
	if images.Fetch && images.Fetcher == nil {
		images.Fetcher = web.New(false)
	}
	return nil
}

// replyReserve returns the number of tokens reserved for the reply: the configured reserve,
// max_tokens (but at most half of the window), or the default.
func replyReserve(m configs.Model, window int64) int64 {
	if m.ReplyReserve > 0 {
		return m.ReplyReserve
	}
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if n := wholeNumber(m.Kwargs[key]); n > 0 {
			return min(n, window/2)
		}
	}
	return min(defaultReserve, window/maxReserveFraction)
}

// wholeNumber converts a number decoded from YAML or JSON; 0 if v is no number.
func wholeNumber(v any) int64 {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}
