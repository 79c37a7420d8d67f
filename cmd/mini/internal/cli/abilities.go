package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/delegate"
	"github.com/minibench/mini/agent/memory"
	"github.com/minibench/mini/agent/skills"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
)

// abilities are what the configuration gives to commands beside the shell: what
// all attempts share of them.
type abilities struct {
	cfg   *configs.Resolved
	all   []ability
	kinds []string // of the tools of each, see runner.Tool
}

// ability makes the tools of one kind. One that has something to give back at the
// end is an io.Closer, too.
type ability interface {
	// tools are those of one attempt. It touches no disk and connects to nothing,
	// so that a plan may ask, too, with an empty place.
	tools(p toolPlace) ([]tools.Tool, error)
}

// toolPlace is where an attempt keeps what it has beside its journal.
type toolPlace struct {
	in datasets.Instance
	// dir is the folder of the attempt's journal, workspace the user's own folder
	// that it works in; empty in a batch.
	dir       string
	workspace string
	// stem begins the names of the attempt's files in dir, where those of others
	// may be there, too; empty in a batch.
	stem string
}

// file is the path of a file that the attempt has beside its journal.
func (p toolPlace) file(name string) string { return filepath.Join(p.dir, p.stem+name) }

// newAbilities connects to what is configured. It is nil where that is nothing.
func newAbilities(ctx context.Context, cfg *configs.Resolved) (_ *abilities, err error) {
	a := &abilities{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	for _, kind := range []struct {
		name string
		make func(context.Context, *configs.Resolved) (ability, error)
	}{
		{"file", newFileTools},
		{"host", newHostTools},
		{"mcp", newMCPTools},
		{"skill", newSkillTools},
		{"memory", newMemoryTools},
		{"agent", newDelegateTools},
	} {
		one, err := kind.make(ctx, cfg)
		if err != nil {
			return nil, err
		}
		if one != nil {
			a.all, a.kinds = append(a.all, one), append(a.kinds, kind.name)
		}
	}
	if allow := cfg.Tools.Allow; len(a.all) == 0 && len(allow) > 0 {
		return nil, cfg.Mistakes(configs.Wrong{
			Key: "tools.allow", Text: fmt.Sprintf("%.80q may be called, and no tool is on; to allow a tool turns none on (docs/tools.md)", allow[0]),
		})
	}
	if len(a.all) == 0 {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	if cfg.Agents.Enabled {
		for _, profile := range cfg.Agents.Profiles {
			if _, err := childConfig(cfg, profile); err != nil {
				return nil, fmt.Errorf("agents.profiles: %w", err)
			}
		}
	}
	return a, a.check()
}

// check finds what no attempt could have: two tools of one name, an allowed one
// that nobody has.
func (a *abilities) check() error {
	if _, err := a.toolbox(toolPlace{}); err != nil {
		return a.cfg.Mistakes(configs.Wrong{Key: "tools", Text: err.Error()})
	}
	return nil
}

// toolbox is what an attempt's commands can ask for; nil where that is nothing.
func (a *abilities) toolbox(p toolPlace) (agent.Toolbox, error) {
	if a == nil {
		return nil, nil //nolint:nilnil // likewise
	}
	c := tools.Config{Allow: a.cfg.Tools.Allow, Timeout: duration(a.cfg.Tools.Timeout), MaxOutput: a.cfg.Tools.MaxOutput}
	for _, one := range a.all {
		list, err := one.tools(p)
		if err != nil {
			return nil, err
		}
		c.Tools = append(c.Tools, list...)
		if s, ok := one.(interface{ told() []agent.Ability }); ok {
			c.Skills = append(c.Skills, s.told()...)
		}
	}
	box, err := tools.New(c)
	if err != nil {
		return nil, err // not a typed nil
	}
	return box, nil
}

// forAttempt is the toolbox of an attempt of a batch.
func (a *abilities) forAttempt(in datasets.Instance, dir string) (agent.Toolbox, error) {
	return a.toolbox(toolPlace{in: in, dir: dir})
}

// addAbilities adds to the settings of a journal's header those of abilities that
// are on.
func addAbilities(settings map[string]any, cfg configs.Config) {
	for name, section := range map[string]any{"tools": cfg.Tools, "skills": cfg.Skills, "memory": cfg.Memory, "agents": cfg.Agents} {
		if !isOff(section) {
			settings[name] = section
		}
	}
}

// quiet leaves out of a header what has no effect on its attempt.
func quiet(c *configs.Config) {
	a := &c.Agent
	if a.Compaction == "" || a.Compaction == agent.CompactOff {
		a.Compaction, a.CompactionTokens, a.CompactionKeep = "", 0, 0
	}
	if a.Compaction != agent.CompactSummarize {
		a.SummaryTemplate, a.SummaryMaxChars, c.Model.Summary = "", 0, nil
	}
}

// isOff says that a section gives commands nothing to ask for.
func isOff(section any) bool {
	switch s := section.(type) {
	case tools.Settings:
		return !s.Files && !s.Recall && len(s.Search) == 0 && len(s.Host) == 0 && len(s.MCP) == 0
	case skills.Config:
		return len(s.Use) == 0
	case memory.Config:
		return (s.Notes == "" || s.Notes == "off") && !s.Goals
	case delegate.Config:
		return !s.Enabled
	}
	return true
}

// Close ends what was connected to.
func (a *abilities) Close() error {
	if a == nil {
		return nil
	}
	var errs []error
	for _, one := range slices.Backward(a.all) {
		if c, ok := one.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
