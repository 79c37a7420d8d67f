package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/skills"
)

// maxSkillPaths bounds skills.paths.
const maxSkillPaths = 50

// validateSkills finds names that no skill can have, and folders that are none.
// Whether a skill is there is found by whoever loads them.
func (r *Resolved) validateSkills() []error {
	var errs []error
	for i, name := range r.Skills.Use {
		switch bad := skills.CheckName(name); {
		case name == skills.All:
		case bad != nil:
			errs = append(errs, r.errorf("skills.use", "%.80q: %v", name, bad))
		case slices.Contains(r.Skills.Use[:i], name):
			errs = append(errs, r.errorf("skills.use", "%s is there twice", name))
		}
	}
	if n := len(r.Skills.Paths); n > maxSkillPaths {
		errs = append(errs, r.errorf("skills.paths", "%d folders are more than %d", n, maxSkillPaths))
	}
	for _, path := range r.Skills.Paths {
		if path == "" || strings.ContainsRune(path, 0) {
			errs = append(errs, r.errorf("skills.paths", "%.80q is no name of a folder", path))
		}
	}
	return errs
}

// SkillPaths are the folders of skills.paths: ~ is the user's home, and what is
// no whole path is found from the file that it stands in, as prompts are.
func (r *Resolved) SkillPaths() []string {
	var paths []string
	o, _ := r.Origin("skills.paths")
	for _, path := range r.Skills.Paths {
		if rest, ok := strings.CutPrefix(path, "~/"); ok || path == "~" {
			if home, err := os.UserHomeDir(); err == nil {
				path = filepath.Join(home, rest)
			}
		}
		if !filepath.IsAbs(path) && o.Line > 0 && !o.Shipped() {
			path = filepath.Join(filepath.Dir(o.Layer), path)
		}
		paths = append(paths, path)
	}
	return paths
}
