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
	"github.com/minibench/mini/runner"
)

// newSkillTools returns the skill tool, or nil if no skills are in use.
func newSkillTools(_ context.Context, cfg *configs.Resolved) (*source, error) {
	if len(cfg.Skills.Use) == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	use, found, err := SelectSkills(cfg)
	if err != nil {
		return nil, err
	}
	bundle, err := skills.NewBundle(use)
	if err != nil {
		return nil, usage.Errorf("%w", err)
	}
	f := &skillDirs{}
	var o skills.Options
	if cfg.Environment.Class == "local" {
		o.Dir = f.newDir
	}
	a := &source{
		kind: "skill", capabilities: bundle.Capabilities(), close: f.Close,
		tools: func(AttemptPaths) ([]tools.Tool, error) { return []tools.Tool{bundle.Tool(o)}, nil },
		manifest: func(all *runner.Capabilities) {
			for _, s := range bundle.Skills() {
				all.Skills = append(all.Skills, runner.Skill{Name: s.Name, Version: s.Version, SHA256: s.Digest()})
			}
		},
	}
	if bad := BadSkills(found); len(bad) > 0 {
		a.warnings = []string{text.Count(len(bad), "skill") + " passed over, not in order (mini skills list; mini skills check says why)"}
	}
	return a, nil
}

// skillDirs creates folders for the files of skills, one per attempt in a local sandbox.
type skillDirs struct {
	mu   sync.Mutex
	dirs []string
}

// newDir creates a folder, locked by this process. Later processes remove folders of killed
// ones.
func (a *skillDirs) newDir() (string, error) {
	dir, err := scratch.New("skills")
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dirs = append(a.dirs, dir)
	return dir, nil
}

// Close removes the folders.
func (a *skillDirs) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, dir := range a.dirs {
		errs = append(errs, scratch.Remove(dir))
	}
	a.dirs = nil
	return errors.Join(errs...)
}

// SkillSources returns where skills are searched. The first skill of a name wins.
func SkillSources(cfg *configs.Resolved) []skills.Source {
	var from []skills.Source
	for _, path := range cfg.SkillPaths() {
		from = append(from, skills.DirSource(path))
	}
	if config := userdirs.ConfigFile(); config != "" {
		own := skills.DirSource(filepath.Join(filepath.Dir(config), "skills"))
		own.Optional = true
		from = append(from, own)
	}
	return append(from, skills.ShippedSource())
}

// SelectSkills returns the skills that skills.use names and all skills found.
func SelectSkills(cfg *configs.Resolved) ([]skills.Skill, *skills.Set, error) {
	var wrong []configs.KeyError
	for _, path := range cfg.SkillPaths() {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			wrong = append(wrong, configs.KeyError{Key: "skills.paths", Text: "there is no folder " + path})
		}
	}
	if len(wrong) > 0 {
		return nil, nil, cfg.KeyErrors(wrong...)
	}
	found := skills.Load(SkillSources(cfg)...)
	for _, name := range cfg.Skills.Use {
		if _, err := found.Select([]string{name}); err != nil {
			wrong = append(wrong, configs.KeyError{Key: "skills.use", Text: err.Error()})
		}
	}
	if len(wrong) > 0 {
		return nil, nil, cfg.KeyErrors(wrong...)
	}
	use, err := found.Select(cfg.Skills.Use)
	if err != nil {
		return nil, nil, cfg.KeyErrors(configs.KeyError{Key: "skills.use", Text: err.Error()})
	}
	return use, found, nil
}

// BadSkills returns the folders of skills with errors.
func BadSkills(found *skills.Set) map[string]bool {
	bad := map[string]bool{}
	for _, p := range found.Problems {
		if !p.Warning {
			bad[p.Dir()] = true
		}
	}
	return bad
}
