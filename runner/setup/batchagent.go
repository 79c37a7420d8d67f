package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	return external.New(own, def, external.Config{ModelName: cfg.Model.Name, Dialects: dialects, Dir: dir, FolderSHA256: hash}), nil
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

// checkOwnAgent returns an error if the configuration names another agent than mini's own.
func checkOwnAgent(cfg *configs.Resolved) error {
	if cfg.Agent.Class == "" {
		return nil
	}
	return usage.Errorf("agent.agent_class: %.60s runs only in a batch; leave it out, or run mini bench --agent NAME", cfg.Agent.Class)
}
