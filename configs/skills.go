package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/tools/skills"
)

// maxSkillPaths limits skills.paths.
const maxSkillPaths = 50

// validateSkills finds invalid names and paths. The skills loader reports missing
// skills.
func (r *Resolved) validateSkills() []error {
	var errs []error
	for i, name := range r.Skills.Use {
		switch err := skills.CheckName(name); {
		case name == skills.All:
		case err != nil:
			errs = append(errs, r.errorf("skills.use", "%.80q: %v", name, err))
		case slices.Contains(r.Skills.Use[:i], name):
			errs = append(errs, r.errorf("skills.use", "%s is listed twice", name))
		}
	}
	if n := len(r.Skills.Paths); n > maxSkillPaths {
		errs = append(errs, r.errorf("skills.paths", "%d directories; at most %d are allowed", n, maxSkillPaths))
	}
	for _, path := range r.Skills.Paths {
		if path == "" || strings.ContainsRune(path, 0) {
			errs = append(errs, r.errorf("skills.paths", "%.80q is not a valid directory name", path))
		}
	}
	return errs
}

// SkillPaths returns skills.paths with the user's home directory for ~. It puts the
// directory of the file that sets them before relative paths; those of a flag are unchanged.
func (r *Resolved) SkillPaths() []string {
	var paths []string
	o, _ := r.Origin("skills.paths")
	for _, path := range r.Skills.Paths {
		if rest, ok := strings.CutPrefix(path, "~/"); ok || path == "~" {
			if home, err := os.UserHomeDir(); err == nil {
				path = filepath.Join(home, rest)
			}
		}
		if !filepath.IsAbs(path) && o.Line > 0 && !o.IsBuiltin() {
			path = filepath.Join(filepath.Dir(o.Layer), path)
		}
		paths = append(paths, path)
	}
	return paths
}
