package setup

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/skills"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/runner/runs"
)

// newSkillTools returns the skill tool, or nil if no skills are in use.
func newSkillTools(_ context.Context, cfg *configs.Resolved) (*source, error) {
	if len(cfg.Skills.Use) == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	selected, set, err := SelectSkills(cfg)
	if err != nil {
		return nil, err
	}
	bundle, err := skills.NewBundle(selected)
	if err != nil {
		return nil, usage.Errorf("%w", err)
	}
	// A folder on this machine has one for each attempt without a container. This process locks it; if that
	// is killed, a later one removes the folder.
	dir := ""
	newDir := sync.OnceValue(func() (err error) {
		dir, err = scratch.New("skills")
		return err
	})
	var opts skills.Options
	if cfg.Environment.Class == "local" {
		opts.Dir = func() (string, error) {
			if err := newDir(); err != nil {
				return "", err
			}
			return os.MkdirTemp(dir, "")
		}
	}
	src := &source{
		kind: "skill", capabilities: bundle.Capabilities(),
		close: func() error {
			if dir == "" {
				return nil
			}
			return scratch.Remove(dir)
		},
		tools: func(AttemptPaths) ([]tools.Tool, error) { return []tools.Tool{bundle.Tool(opts)}, nil },
		manifest: func(all *runs.Capabilities) {
			for _, s := range bundle.Skills() {
				all.Skills = append(all.Skills, runs.Skill{Name: s.Name, Version: s.Version, SHA256: s.Digest()})
			}
		},
	}
	if bad := BadSkills(set); len(bad) > 0 {
		src.warnings = []string{text.Count(len(bad), "skill") + " passed over, not in order (mini skills list; mini skills check says why)"}
	}
	return src, nil
}

// SkillSources returns the sources of skills. If several have a skill of the same name, the
// first source wins.
func SkillSources(cfg *configs.Resolved) []skills.Source {
	var sources []skills.Source
	for _, path := range cfg.SkillPaths() {
		sources = append(sources, skills.DirSource(path))
	}
	if config := userdirs.ConfigFile(); config != "" {
		own := skills.DirSource(filepath.Join(filepath.Dir(config), "skills"))
		own.Optional = true
		sources = append(sources, own)
	}
	return append(sources, skills.ShippedSource())
}

// SelectSkills returns the skills named in skills.use, and the set of all skills found.
func SelectSkills(cfg *configs.Resolved) ([]skills.Skill, *skills.Set, error) {
	var keyErrs []configs.KeyError
	for _, path := range cfg.SkillPaths() {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			keyErrs = append(keyErrs, configs.KeyError{Key: "skills.paths", Text: "there is no folder " + path})
		}
	}
	if len(keyErrs) > 0 {
		return nil, nil, cfg.KeyErrors(keyErrs...)
	}
	set := skills.Load(SkillSources(cfg)...)
	for _, name := range cfg.Skills.Use {
		if _, err := set.Select([]string{name}); err != nil {
			keyErrs = append(keyErrs, configs.KeyError{Key: "skills.use", Text: err.Error()})
		}
	}
	if len(keyErrs) > 0 {
		return nil, nil, cfg.KeyErrors(keyErrs...)
	}
	selected, err := set.Select(cfg.Skills.Use)
	return selected, set, err
}

// BadSkills returns the folders of skills that have errors, not only warnings.
func BadSkills(set *skills.Set) map[string]bool {
	bad := map[string]bool{}
	for _, p := range set.Problems {
		if !p.Warning {
			bad[p.Dir()] = true
		}
	}
	return bad
}
