package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/skills"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
)

// newSkillTools makes the texts of skills; nil where they are off.
func newSkillTools(_ context.Context, cfg *configs.Resolved) (ability, error) {
	if len(cfg.Skills.Use) == 0 {
		return nil, nil //nolint:nilnil // as the comment says
	}
	use, found, err := skillsInUse(cfg)
	if err != nil {
		return nil, err
	}
	bundle, err := skills.NewBundle(use)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return &skillTools{Bundle: bundle, found: found, onHost: cfg.Environment.Class == "local"}, nil
}

// skillTools are the skills of all attempts.
type skillTools struct {
	*skills.Bundle
	found *skills.Set
	// onHost says that sandboxes have the file system of this machine: each gets a
	// folder of its own for the files of skills.
	onHost bool

	mu   sync.Mutex
	dirs []string
}

// tools implements ability.
func (a *skillTools) tools(toolPlace) ([]tools.Tool, error) {
	var o skills.Options
	if a.onHost {
		o.Dir = a.folder
	}
	return []tools.Tool{a.Tool(o)}, nil
}

// told are what prompts tell of.
func (a *skillTools) told() []agent.Ability { return a.Abilities() }

// manifest says which skills there are, and what their files are.
func (a *skillTools) manifest(all *runner.Abilities) {
	for _, s := range a.Skills() {
		sum, _ := s.Sum() // one whose files are gone since has none
		all.Skills = append(all.Skills, runner.Skill{Name: s.Name, Version: s.Version, SHA256: sum})
	}
}

// warnings are about skills that were passed over.
func (a *skillTools) warnings() []string {
	bad := badSkills(a.found)
	if len(bad) == 0 {
		return nil
	}
	return []string{report.Count(len(bad), "skill") + " passed over, not in order (mini skills list; mini skills check says why)"}
}

// warn says what abilities have to say before anything is run.
func (a *abilities) warn(w io.Writer) {
	if a == nil {
		return
	}
	for _, one := range a.all {
		if o, ok := one.(interface{ warnings() []string }); ok {
			for _, text := range o.warnings() {
				_, _ = fmt.Fprintln(w, "mini: warning:", lines(text)) // only for people
			}
		}
	}
}

// folder is a new one for an attempt on the host. Its lock is this process's: a
// later mini removes what a killed one has left.
func (a *skillTools) folder() (string, error) {
	dir, err := scratch.New("skills")
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dirs = append(a.dirs, dir)
	return dir, nil
}

// Close removes the folders of attempts.
func (a *skillTools) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, dir := range a.dirs {
		errs = append(errs, scratch.Remove(dir))
	}
	a.dirs = nil
	return errors.Join(errs...)
}

// skillSources are where skills are looked for: of two with one name the first
// counts.
func skillSources(cfg *configs.Resolved) []skills.Source {
	var from []skills.Source
	for _, path := range cfg.SkillPaths() {
		from = append(from, skills.Folder(path))
	}
	if config := userConfig(); config != "" {
		own := skills.Folder(filepath.Join(filepath.Dir(config), "skills"))
		own.Optional = true
		from = append(from, own)
	}
	return append(from, skills.Shipped())
}

// skillsInUse are those that skills.use names, and all that was found.
func skillsInUse(cfg *configs.Resolved) ([]skills.Skill, *skills.Set, error) {
	var wrong []configs.Wrong
	for _, path := range cfg.SkillPaths() {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			wrong = append(wrong, configs.Wrong{Key: "skills.paths", Text: "there is no folder " + path})
		}
	}
	if len(wrong) > 0 {
		return nil, nil, cfg.Mistakes(wrong...)
	}
	found := skills.Load(skillSources(cfg)...)
	for _, name := range cfg.Skills.Use {
		if _, err := found.Use([]string{name}); err != nil {
			wrong = append(wrong, configs.Wrong{Key: "skills.use", Text: err.Error()})
		}
	}
	if len(wrong) > 0 {
		return nil, nil, cfg.Mistakes(wrong...)
	}
	use, err := found.Use(cfg.Skills.Use)
	if err != nil {
		return nil, nil, cfg.Mistakes(configs.Wrong{Key: "skills.use", Text: err.Error()})
	}
	return use, found, nil
}
