package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/delegate"
	"github.com/minibench/mini/agent/memory"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/skills"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/host"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// children are the ability to have them: what all attempts share of it.
type children struct {
	cfg    *configs.Resolved
	kinds  map[string]kind // by profile; "" is the parent's own configuration
	header trajectories.Header
	used   []skills.Skill
}

// kind is what a child can be.
type kind struct {
	agent  *agent.Agent
	models runner.Models     // nil is the parent's
	offers func(string) bool // nil is all that the parent has
	policy *policy.Policy    // asked before the parent's; nil is that alone
}

// newDelegateTools makes children, chains of them and their board; nil where they are off.
func newDelegateTools(_ context.Context, cfg *configs.Resolved) (ability, error) {
	if !cfg.Agents.Enabled {
		return nil, nil //nolint:nilnil // off
	}
	c := &children{cfg: cfg, kinds: map[string]kind{}}
	own, err := agent.New(delegate.Child(cfg.Agent, cfg.Agents))
	if err != nil {
		return nil, cfg.Locate(err)
	}
	c.kinds[""] = kind{agent: own}
	for _, name := range cfg.Agents.Profiles {
		if c.kinds[name], err = c.profile(name); err != nil {
			return nil, err
		}
	}
	if len(cfg.Skills.Use) > 0 {
		if c.used, _, err = skillsInUse(cfg); err != nil {
			return nil, err
		}
	}
	c.header, err = headerOf(cfg, cfg.Environment.Class)
	return c, err
}

// skill is one of those in use, as a child is held to it.
func (c *children) skill(name string) (delegate.Skill, error) {
	i := slices.IndexFunc(c.used, func(s skills.Skill) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range c.used {
			names = append(names, s.Name)
		}
		if near := tools.Nearest(name, names); near != "" {
			return delegate.Skill{}, fmt.Errorf("there is no skill %.80q; did you mean %q?", name, near)
		}
		return delegate.Skill{}, fmt.Errorf("there is no skill %.80q here", name)
	}
	s := c.used[i]
	g := s.Grant()
	return delegate.Skill{Body: s.Text, Restricts: !g.Any, AllowedTools: g.Tools, Bash: g.Bash, Commands: g.Patterns}, nil
}

// profile is what a child of a profile is. Where the profile says nothing of models,
// its model is the parent's.
func (c *children) profile(name string) (kind, error) {
	cfg, err := childConfig(c.cfg, name)
	if err != nil {
		return kind{}, err
	}
	for _, set := range []func(*configs.Resolved) error{setImages, setWindow} {
		if err := set(cfg); err != nil {
			return kind{}, err
		}
	}
	k := kind{offers: offered(cfg, c.cfg)}
	if k.agent, err = agent.New(delegate.OfProfile(cfg.Agent, c.cfg.Agent, c.cfg.Agents)); err != nil {
		return kind{}, cfg.Locate(err)
	}
	if !reflect.DeepEqual(cfg.Policy, c.cfg.Policy) {
		if k.policy, err = newPolicy(cfg, c.cfg.Environment.Class); err != nil {
			return kind{}, err
		}
	}
	if !reflect.DeepEqual(cfg.Model, c.cfg.Model) || !slices.EqualFunc(cfg.Agent.Tools(), c.cfg.Agent.Tools(), sameTool) {
		k.models, err = newModels(cfg, false, nil)
	}
	return k, err
}

// offered says which tools of its parent's a child of a profile may call: those
// that the profile allows, of what it leaves on.
func offered(profile, parent *configs.Resolved) func(name string) bool {
	on := profile.Tools
	notes := !isOff(memory.Config{Notes: profile.Memory.Notes})
	own := map[string]bool{
		"read": on.Files, "write": on.Files, "edit": on.Files, "recall": on.Recall, host.SearchName: len(on.Search) > 0,
		"note": notes, "notes": notes, "goal": profile.Memory.Goals, tools.Skill: len(profile.Skills.Use) > 0,
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

// sameTool says that requests offer the same.
func sameTool(a, b model.Definition) bool { return reflect.DeepEqual(a, b) }

// tools implements ability.
func (c *children) tools(p toolPlace) ([]tools.Tool, error) {
	o := delegate.Options{
		Config: c.cfg.Agents,
		Kind:   func(profile string) (delegate.Kind, error) { return c.kind(profile, p) },
	}
	if len(c.used) > 0 {
		o.Skill = c.skill
	}
	if p.dir != "" {
		o.Journals = c.journals(p)
	}
	return delegate.New(o).Tools(), nil
}

// journals are those of an attempt's children: in the folder "children" beside the
// attempt's, or, where that has a name among others, NAME.children.
func (c *children) journals(p toolPlace) delegate.Journals {
	header := c.header
	header.InstanceID, header.Attempt, header.ModelName = p.in.ID, attemptOf(p), modelName(c.cfg)
	return delegate.Folder{
		Dir: p.dir, Journal: p.stem + trajectories.ChildJournal, Name: p.stem + trajectories.ChildrenFolder,
		Header: header, Sync: c.cfg.Run.Fsync,
	}
}

// attemptOf is the number of the attempt whose folder it is, which is its name in
// a batch.
func attemptOf(p toolPlace) int {
	n := 0
	if _, err := fmt.Sscanf(filepath.Base(p.dir), "%d", &n); err != nil || n < 1 || p.stem != "" {
		return 1
	}
	return n
}

func (c *children) kind(profile string, p toolPlace) (delegate.Kind, error) {
	k, ok := c.kinds[profile]
	if !ok {
		if len(c.kinds) == 1 {
			return delegate.Kind{}, fmt.Errorf("there are no profiles here (agents.profiles)")
		}
		var names []string
		for name := range c.kinds {
			if name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return delegate.Kind{}, fmt.Errorf("there is no profile %.80q here; there is %s", profile, strings.Join(names, ", "))
	}
	is := delegate.Kind{Agent: k.agent, Offers: k.offers}
	if k.policy != nil {
		is.Supervisor = k.policy.For(p.in.ID)
	}
	var err error
	if k.models != nil {
		is.Model, err = k.models.For(p.in)
	}
	return is, err
}
