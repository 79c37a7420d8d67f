package setup

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/host"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/agent/tools/skills"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/configs"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/trajectories"
)

// subagentSource makes the subagent tools. All attempts share it.
type subagentSource struct {
	cfg      *configs.Resolved
	profiles map[string]subagentKind // by name; "" has the configuration of the parent
	header   trajectories.Header
	skills   []skills.Skill
}

// subagentKind configures the subagents of one profile.
type subagentKind struct {
	agent      *agent.Agent
	models     *modelopen.Models // nil: the models of the parent
	allowsTool func(string) bool // nil: all tools of the parent are allowed
	policy     *policy.Policy    // checked before the policy of the parent; may be nil
}

// newSubagentTools returns the tools delegate, chain and board, or nil if subagents are off.
func newSubagentTools(_ context.Context, cfg *configs.Resolved) (*source, error) {
	if !cfg.Agents.Enabled {
		return nil, nil //nolint:nilnil // off
	}
	c := &subagentSource{cfg: cfg, profiles: map[string]subagentKind{}}
	own, err := agent.New(subagents.ChildConfig(cfg.Agent, cfg.Agents))
	if err != nil {
		return nil, cfg.Locate(err)
	}
	c.profiles[""] = subagentKind{agent: own}
	for _, name := range cfg.Agents.Profiles {
		if c.profiles[name], err = c.newKind(name); err != nil {
			return nil, err
		}
	}
	if len(cfg.Skills.Use) > 0 {
		if c.skills, _, err = SelectSkills(cfg); err != nil {
			return nil, err
		}
	}
	c.header, err = NewHeader(cfg, cfg.Environment.Class)
	return &source{kind: "agent", tools: c.tools}, err
}

// findSkill returns a skill in use and the permissions of a subagent that uses it.
func (c *subagentSource) findSkill(name string) (subagents.Skill, error) {
	i := slices.IndexFunc(c.skills, func(s skills.Skill) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range c.skills {
			names = append(names, s.Name)
		}
		if closest := tools.Nearest(name, names); closest != "" {
			return subagents.Skill{}, fmt.Errorf("there is no skill %.80q; did you mean %q?", name, closest)
		}
		return subagents.Skill{}, fmt.Errorf("there is no skill %.80q here", name)
	}
	s := c.skills[i]
	permissions := s.Permissions()
	return subagents.Skill{Body: s.Text, Restricted: !permissions.Unrestricted, AllowedTools: permissions.Tools, Bash: permissions.Bash, Commands: permissions.Patterns}, nil
}

// newKind returns the configuration of a profile's subagents. The subagents use the parent's
// model if the profile changes neither the model nor the tool definitions.
func (c *subagentSource) newKind(name string) (subagentKind, error) {
	cfg, err := configs.WithProfile(c.cfg, name)
	if err != nil {
		return subagentKind{}, err
	}
	if err := setModelFacts(cfg); err != nil {
		return subagentKind{}, err
	}
	k := subagentKind{allowsTool: toolFilter(cfg, c.cfg)}
	if k.agent, err = agent.New(subagents.ProfileConfig(cfg.Agent, c.cfg.Agent, c.cfg.Agents)); err != nil {
		return subagentKind{}, cfg.Locate(err)
	}
	if !reflect.DeepEqual(cfg.Policy, c.cfg.Policy) {
		if k.policy, err = NewPolicy(cfg, c.cfg.Environment.Class); err != nil {
			return subagentKind{}, err
		}
	}
	if !reflect.DeepEqual(cfg.Model, c.cfg.Model) || !reflect.DeepEqual(cfg.Agent.ToolDefinitions(), c.cfg.Agent.ToolDefinitions()) {
		k.models, err = modelopen.New(cfg, false, nil, nil)
	}
	return k, err
}

// toolFilter returns a function that reports whether a subagent may call a tool of the parent:
// the profile must enable and allow it.
func toolFilter(profile, parent *configs.Resolved) func(name string) bool {
	enabled := profile.Tools
	notes := !isOff(memory.Config{Notes: profile.Memory.Notes})
	builtin := map[string]bool{
		"read": enabled.Files, "write": enabled.Files, "edit": enabled.Files, "recall": enabled.Recall, host.SearchName: len(enabled.Search) > 0,
		"note": notes, "notes": notes, "goal": profile.Memory.Goals, tools.SkillToolName: len(profile.Skills.Use) > 0,
		"delegate": profile.Agents.Enabled, "chain": profile.Agents.Enabled, "board": profile.Agents.Enabled,
	}
	named := func(name string) func(tools.HostTool) bool {
		return func(t tools.HostTool) bool { return t.Name == name }
	}
	return func(name string) bool {
		if len(enabled.Allow) > 0 && !slices.Contains(enabled.Allow, name) {
			return false
		}
		if allowed, ok := builtin[name]; ok {
			return allowed
		}
		if slices.ContainsFunc(parent.Tools.Host, named(name)) {
			return slices.ContainsFunc(enabled.Host, named(name))
		}
		return len(enabled.MCP) > 0
	}
}

func (c *subagentSource) tools(p AttemptPaths) ([]tools.Tool, error) {
	o := subagents.Options{
		Config:     c.cfg.Agents,
		Definition: func(profile string) (subagents.Definition, error) { return c.definition(profile, p) },
	}
	if len(c.skills) > 0 {
		o.Skill = c.findSkill
	}
	if p.Dir != "" { // the folder "children" beside the attempt's journal
		header := c.header
		header.InstanceID, header.Attempt, header.ModelName = p.Instance.ID, 1, modelopen.Name(c.cfg)
		if n, err := strconv.Atoi(filepath.Base(p.Dir)); err == nil && n > 0 && p.Prefix == "" { // in a batch
			header.Attempt = n
		}
		o.Journals = subagents.JournalDir{
			Dir: p.Dir, ParentJournal: p.Prefix + trajectories.ChildJournalName, Subdir: p.Prefix + trajectories.ChildrenFolderName,
			Header: header, Sync: c.cfg.Run.Fsync,
		}
	}
	return subagents.New(o).Tools(), nil
}

func (c *subagentSource) definition(profile string, p AttemptPaths) (subagents.Definition, error) {
	k, ok := c.profiles[profile]
	if !ok {
		if len(c.profiles) == 1 {
			return subagents.Definition{}, fmt.Errorf("there are no profiles here (agents.profiles)")
		}
		names := slices.Sorted(maps.Keys(c.profiles))[1:] // the first is ""
		return subagents.Definition{}, fmt.Errorf("there is no profile %.80q here; there is %s", profile, strings.Join(names, ", "))
	}
	def := subagents.Definition{Agent: k.agent, AllowsTool: k.allowsTool}
	if k.policy != nil {
		def.Approver = k.policy.ForInstance(p.Instance.ID)
	}
	var err error
	if k.models != nil {
		def.Model, err = k.models.For(p.Instance)
	}
	return def, err
}
