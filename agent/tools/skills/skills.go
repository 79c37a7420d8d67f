// Package skills provides instructions for recurring kinds of tasks. A skill is
// a directory with a file SKILL.md. The model sees the names of skills and
// reads a skill's text when it needs it.
//
// What the model sees, and where:
//
//	names and descriptions     in the prompt (template variable .skills)
//	the text of a skill        printed by "mini-tool skill NAME"
//	the skill's other files    in the sandbox, read-only
//
// The format is that of Agent Skills (https://agentskills.io): SKILL.md begins
// with YAML between two lines "---", followed by the text. A skill that
// violates the format is reported as a Problem and skipped; the others are
// loaded.
//
//	set := skills.Load(skills.DirSource("/etc/skills"), skills.ShippedSource())
//	use, err := set.Select([]string{"bisecting-regressions"})
//	bundle, err := skills.NewBundle(use)
//	registry, err := tools.New(tools.Config{
//		Tools:  []tools.Tool{bundle.Tool(skills.Options{})},
//		Skills: bundle.Capabilities(),
//	})
//
// The package does not enforce AllowedTools: for the main agent it is only
// advice. It is enforced when a subagent runs under the skill (see
// Permissions).
package skills

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/minibench/mini/agent/tools"
)

// Config is the skills section of a configuration.
type Config struct {
	// Use names the skills to list in the prompt; "*" means all, empty means
	// none.
	Use []string `yaml:"use" json:"use,omitempty"`
	// Paths are directories of skills, in addition to mini's own skills and the
	// user's directory. If two skills have the same name, the one from the
	// first directory is used.
	Paths []string `yaml:"paths" json:"paths,omitempty"`
}

// All is the name in Config.Use that stands for every skill.
const All = "*"

// Bounds of what is loaded. Exceeding one is a Problem; for MaxSelectedBytes it is
// an error of Select.
const (
	// MaxText bounds SKILL.md and MaxFrontMatter its front matter, in bytes.
	MaxText        = 64 << 10
	MaxFrontMatter = 16 << 10
	// MaxName, MaxDescription and MaxCompatibility are in characters.
	MaxName          = 64
	MaxDescription   = 1024
	MaxCompatibility = 500
	// MaxSkills bounds the skills of a Source.
	MaxSkills = 200
	// MaxFiles, MaxBytes, MaxDepth and MaxPath bound the files of a skill other
	// than SKILL.md: their number, their total size in bytes, the nesting depth
	// of their directories, and the length of their paths in bytes.
	MaxFiles = 200
	MaxBytes = 8 << 20
	MaxDepth = 8
	MaxPath  = 200
	// MaxSelectedBytes bounds the files of all selected skills together, in
	// bytes.
	MaxSelectedBytes = 32 << 20
)

// Skill is a loaded skill. It must not be modified.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"` // one line
	Version     string `json:"version,omitempty"`
	// AllowedTools is the list in SKILL.md. Nil means that all tools are
	// allowed; an empty list allows only the tool "skill". See Permissions.
	AllowedTools  []string          `json:"allowed_tools,omitzero"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	// Source is the name of the Source. Path is the path of the skill's
	// directory, beginning with that name.
	Source string `json:"source"`
	Path   string `json:"path"`
	// Files are the files other than SKILL.md, sorted by path.
	Files []File `json:"files,omitempty"`
	// Text is the text after the front matter.
	Text string `json:"-"`

	sum []byte // SHA-256 of SKILL.md
}

// File is a file of a skill. Files in scripts/, and files that are executable
// in their Source, are executable.
type File struct {
	Path       string `json:"path"` // slash-separated, relative to the skill's directory
	Size       int64  `json:"size"`
	Executable bool   `json:"executable,omitempty"`

	data []byte
}

// TotalSize returns the total size of the skill's files in bytes.
func (s Skill) TotalSize() (n int64) {
	for _, f := range s.Files {
		n += f.Size
	}
	return n
}

// Digest returns the hexadecimal SHA-256 digest of SKILL.md and the names,
// modes and contents of the skill's files.
func (s Skill) Digest() string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%x\n", s.sum) // a hash never fails
	for _, f := range s.Files {
		_, _ = fmt.Fprintf(h, "%q %v %x\n", f.Path, f.Executable, sha256.Sum256(f.data)) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Set is the result of Load.
type Set struct {
	// Skills are the valid skills, sorted by name.
	Skills []Skill
	// Problems are errors and warnings in the order of discovery.
	Problems []Problem
}

// Problem is an error in a skill, which is then skipped, or a warning.
type Problem struct {
	// Skill is the name of the skill's directory; empty if the whole Source is
	// affected.
	Skill string `json:"skill,omitempty"`
	// File is the affected path, beginning with the Source's name. Line counts
	// from 1; 0 means the whole file.
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Text    string `json:"text"`
	Warning bool   `json:"warning,omitempty"`

	folder string
}

// String returns the problem on one line. File may contain arbitrary bytes.
func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, p.Line)
	}
	if p.Warning {
		at += ": warning"
	}
	return at + ": " + p.Text
}

// Dir returns the directory of the affected skill or, if Skill is empty, of the
// Source. Its path begins with the Source's name.
func (p Problem) Dir() string { return p.folder }

// Find returns the skill with the given name.
func (s *Set) Find(name string) (Skill, bool) {
	i, ok := slices.BinarySearchFunc(s.Skills, name, func(a Skill, b string) int { return cmp.Compare(a.Name, b) })
	if !ok {
		return Skill{}, false
	}
	return s.Skills[i], true
}

// NotFoundError reports that there is no valid skill named Name.
type NotFoundError struct {
	Name string
	// Nearest is the most similar name; empty if none is similar.
	Nearest string
	// Problem is the first error, else the first warning, about the skill's
	// directory of this name; nil if there is none.
	Problem *Problem
}

// Error implements error. The name is bounded and quoted.
func (e *NotFoundError) Error() string {
	switch {
	case e.Problem != nil:
		return fmt.Sprintf("invalid skill %.80q: %s", e.Name, e.Problem)
	case e.Nearest != "":
		return fmt.Sprintf("there is no skill %.80q; did you mean %s?", e.Name, e.Nearest)
	}
	return fmt.Sprintf("there is no skill %.80q; see mini skills list", e.Name)
}

// Select returns the skills with the given names, sorted and without
// duplicates; All selects every skill. The error for an unknown name is a
// *NotFoundError. Select also fails if the skills' files exceed
// MaxSelectedBytes.
func (s *Set) Select(names []string) ([]Skill, error) {
	var selected []Skill
	for _, name := range names {
		if name == All {
			selected = append(selected, s.Skills...)
			continue
		}
		skill, ok := s.Find(name)
		if !ok {
			return nil, s.notFound(name)
		}
		selected = append(selected, skill)
	}
	slices.SortStableFunc(selected, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	selected = slices.CompactFunc(selected, func(a, b Skill) bool { return a.Name == b.Name })
	var bytes int64
	for _, skill := range selected {
		bytes += skill.TotalSize()
	}
	if bytes > MaxSelectedBytes {
		return nil, fmt.Errorf("the files of %d skills have %d MB, more than the limit of %d MB", len(selected), bytes>>20, MaxSelectedBytes>>20)
	}
	return selected, nil
}

func (s *Set) notFound(name string) error {
	e := &NotFoundError{Name: name}
	for _, p := range s.Problems {
		if p.Skill == name && (e.Problem == nil || e.Problem.Warning && !p.Warning) {
			e.Problem = &p
		}
	}
	if e.Problem != nil {
		return e
	}
	var names []string
	for _, skill := range s.Skills {
		names = append(names, skill.Name)
	}
	e.Nearest = tools.Nearest(name, names)
	return e
}
