package setup

import (
	"context"
	"errors"
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
	dirs := &skillDirs{}
	var opts skills.Options
	if cfg.Environment.Class == "local" {
		opts.Dir = dirs.newDir
	}
	src := &source{
		kind: "skill", capabilities: bundle.Capabilities(), close: dirs.Close,
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

// skillDirs creates folders on this machine for the files of skills, one for each attempt
// without a container.
type skillDirs struct {
	mu   sync.Mutex
	dirs []string
}

// newDir creates a folder that this process locks. If the process is killed, a later one removes
// the folder.
func (d *skillDirs) newDir() (string, error) {
	dir, err := scratch.New("skills")
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dirs = append(d.dirs, dir)
	return dir, nil
}

// Close removes the folders.
func (d *skillDirs) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, dir := range d.dirs {
		errs = append(errs, scratch.Remove(dir))
	}
	d.dirs = nil
	return errors.Join(errs...)
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
	if err != nil {
		return nil, nil, cfg.KeyErrors(configs.KeyError{Key: "skills.use", Text: err.Error()})
	}
	return selected, set, nil
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
