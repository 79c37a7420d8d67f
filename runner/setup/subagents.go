package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/host"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/agent/tools/skills"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/model"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/trajectories"
)

// subagentSource makes the subagent tools; all attempts share it.
type subagentSource struct {
	cfg    *configs.Resolved
	kinds  map[string]subagentKind // by profile; "" is the configuration of the parent
	header trajectories.Header
	skills []skills.Skill
}

// subagentKind is a subagent with a given profile.
type subagentKind struct {
	agent      *agent.Agent
	models     *modelopen.Models // nil: those of the parent
	allowsTool func(string) bool // nil: all tools of the parent
	policy     *policy.Policy    // checked before the policy of the parent; may be nil
}

// newSubagentTools returns the tools delegate, chain and board, or nil if subagents are off.
func newSubagentTools(_ context.Context, cfg *configs.Resolved) (*source, error) {
	if !cfg.Agents.Enabled {
		return nil, nil //nolint:nilnil // off
	}
	c := &subagentSource{cfg: cfg, kinds: map[string]subagentKind{}}
	own, err := agent.New(subagents.ChildConfig(cfg.Agent, cfg.Agents))
	if err != nil {
		return nil, cfg.Locate(err)
	}
	c.kinds[""] = subagentKind{agent: own}
	for _, name := range cfg.Agents.Profiles {
		if c.kinds[name], err = c.newKind(name); err != nil {
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

// findSkill returns a skill in use with the permissions that a subagent gets.
func (c *subagentSource) findSkill(name string) (subagents.Skill, error) {
	i := slices.IndexFunc(c.skills, func(s skills.Skill) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range c.skills {
			names = append(names, s.Name)
		}
		if near := tools.Nearest(name, names); near != "" {
			return subagents.Skill{}, fmt.Errorf("there is no skill %.80q; did you mean %q?", name, near)
		}
		return subagents.Skill{}, fmt.Errorf("there is no skill %.80q here", name)
	}
	s := c.skills[i]
	g := s.Permissions()
	return subagents.Skill{Body: s.Text, Restricted: !g.Unrestricted, AllowedTools: g.Tools, Bash: g.Bash, Commands: g.Patterns}, nil
}

// newKind returns the subagent of a profile. A profile without a model uses that of the parent.
func (c *subagentSource) newKind(name string) (subagentKind, error) {
	cfg, err := configs.ForProfile(c.cfg, name)
	if err != nil {
		return subagentKind{}, err
	}
	for _, set := range []func(*configs.Resolved) error{setImages, setWindow} {
		if err := set(cfg); err != nil {
			return subagentKind{}, err
		}
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
	if !reflect.DeepEqual(cfg.Model, c.cfg.Model) || !slices.EqualFunc(cfg.Agent.ToolDefinitions(), c.cfg.Agent.ToolDefinitions(), sameTool) {
		k.models, err = modelopen.New(cfg, false, nil)
	}
	return k, err
}

// toolFilter returns which of the parent's tools a subagent may call: those that the profile
// enables and allows.
func toolFilter(profile, parent *configs.Resolved) func(name string) bool {
	on := profile.Tools
	notes := !isOff(memory.Config{Notes: profile.Memory.Notes})
	own := map[string]bool{
		"read": on.Files, "write": on.Files, "edit": on.Files, "recall": on.Recall, host.SearchName: len(on.Search) > 0,
		"note": notes, "notes": notes, "goal": profile.Memory.Goals, tools.SkillToolName: len(profile.Skills.Use) > 0,
		"delegate": profile.Agents.Enabled, "chain": profile.Agents.Enabled, "board": profile.Agents.Enabled,
	}
	named := func(name string) func(tools.HostTool) bool {
		return func(t tools.HostTool) bool { return t.Name == name }
	}
	return func(name string) bool {
		if len(on.Allow) > 0 && !slices.Contains(on.Allow, name) {
			return false
		}
		if is, ok := own[name]; ok {
			return is
		}
		if slices.ContainsFunc(parent.Tools.Host, named(name)) {
			return slices.ContainsFunc(on.Host, named(name))
		}
		return len(on.MCP) > 0
	}
}

func sameTool(a, b model.ToolDefinition) bool { return reflect.DeepEqual(a, b) }

func (c *subagentSource) tools(p AttemptPaths) ([]tools.Tool, error) {
	o := subagents.Options{
		Config:     c.cfg.Agents,
		Definition: func(profile string) (subagents.Definition, error) { return c.definition(profile, p) },
	}
	if len(c.skills) > 0 {
		o.Skill = c.findSkill
	}
	if p.Dir != "" {
		o.Journals = c.journalDir(p)
	}
	return subagents.New(o).Tools(), nil
}

// journalDir returns where the journals of subagents are stored: in the folder "children"
// beside the journal of the attempt, with the prefix of the attempt.
func (c *subagentSource) journalDir(p AttemptPaths) subagents.JournalDir {
	header := c.header
	header.InstanceID, header.Attempt, header.ModelName = p.Instance.ID, attemptNumber(p), modelopen.Name(c.cfg)
	return subagents.JournalDir{
		Dir: p.Dir, Journal: p.Prefix + trajectories.ChildJournal, Name: p.Prefix + trajectories.ChildrenFolder,
		Header: header, Sync: c.cfg.Run.Fsync,
	}
}

// attemptNumber returns the number of an attempt. In a batch it is the name of its folder.
func attemptNumber(p AttemptPaths) int {
	n := 0
	if _, err := fmt.Sscanf(filepath.Base(p.Dir), "%d", &n); err != nil || n < 1 || p.Prefix != "" {
		return 1
	}
	return n
}

func (c *subagentSource) definition(profile string, p AttemptPaths) (subagents.Definition, error) {
	k, ok := c.kinds[profile]
	if !ok {
		if len(c.kinds) == 1 {
			return subagents.Definition{}, fmt.Errorf("there are no profiles here (agents.profiles)")
		}
		var names []string
		for name := range c.kinds {
			if name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return subagents.Definition{}, fmt.Errorf("there is no profile %.80q here; there is %s", profile, strings.Join(names, ", "))
	}
	is := subagents.Definition{Agent: k.agent, AllowsTool: k.allowsTool}
	if k.policy != nil {
		is.Approver = k.policy.ForInstance(p.Instance.ID)
	}
	var err error
	if k.models != nil {
		is.Model, err = k.models.For(p.Instance)
	}
	return is, err
}
