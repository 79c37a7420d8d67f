// Package skills holds instructions for tasks of a kind, which a model is told of
// by name and reads when it needs them: a folder with a file SKILL.md each.
//
// What is disclosed, and when:
//
//	names and descriptions     are part of the prompt (template variable .skills)
//	the text of one            is printed by "mini-tool skill NAME"
//	the other files of it      lie in the sandbox, read-only, for commands to use
//
// A folder has the form that is public as Agent Skills: SKILL.md begins with YAML
// between two lines "---", and its text follows. What breaks the rules is a
// Problem, and that skill is passed over; the others are there.
//
//	set := skills.Load(skills.Folder("/etc/skills"), skills.Shipped())
//	use, err := set.Use([]string{"bisecting-regressions"})
//	bundle, err := skills.NewBundle(use)
//	box, err := tools.New(tools.Config{
//		Tools:  []tools.Tool{bundle.Tool(skills.Options{})},
//		Skills: bundle.Abilities(),
//	})
//
// It does not decide what a model may do: AllowedTools is advice, until a
// sub-agent runs under the skill (see Grant).
package skills

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Config is the section skills of a configuration.
type Config struct {
	// Use names the skills that the model is told of, "*" all there are; empty
	// means none.
	Use []string `yaml:"use" json:"use,omitempty"`
	// Paths are folders of skills beside those that ship with mini and those in the
	// user's own folder; of two with one name the first counts.
	Paths []string `yaml:"paths" json:"paths,omitempty"`
}

// All, in Config.Use, stands for every skill there is.
const All = "*"

// Bounds of what is loaded. What goes beyond them is a Problem.
const (
	// MaxText is the longest SKILL.md, MaxHead its longest front matter, in bytes.
	MaxText = 64 << 10
	MaxHead = 16 << 10
	// MaxName, MaxDescription and MaxCompatibility are in characters.
	MaxName          = 64
	MaxDescription   = 1024
	MaxCompatibility = 500
	// MaxSkills is how many skills a folder may have, MaxListed how many entries
	// of any kind.
	MaxSkills = 200
	MaxListed = 2000
	// MaxFiles, MaxBytes, MaxDepth and MaxPath bound the files of a skill beside
	// SKILL.md: how many, how large all together, how deep, how long a name with
	// its folders.
	MaxFiles = 200
	MaxBytes = 8 << 20
	MaxDepth = 8
	MaxPath  = 200
	// MaxUsed is how many bytes of files all skills in use have together.
	MaxUsed = 32 << 20
)

// Skill is one of them. It is not to be changed.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"` // one line
	Version     string `json:"version,omitempty"`
	// AllowedTools are as SKILL.md has them. Nil where it says nothing: then all
	// tools are allowed; an empty list allows none. See Grant.
	AllowedTools  []string          `json:"allowed_tools,omitzero"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	// Source and Path say where it is from: the name of its Source, and its folder
	// there.
	Source string `json:"source"`
	Path   string `json:"path"`
	// Files are those beside SKILL.md, sorted by path.
	Files []File `json:"files,omitempty"`
	// Text is what stands behind the front matter.
	Text string `json:"-"`

	folder opener
	sum    []byte // of SKILL.md
}

// File is a file of a skill beside SKILL.md. Those in scripts/ can be executed.
type File struct {
	Path       string `json:"path"` // with slashes, below the skill's folder
	Size       int64  `json:"size"`
	Executable bool   `json:"executable,omitempty"`
}

// opener gives the folder of a skill, and how to be done with it.
type opener func() (fs.FS, io.Closer, error)

// Bytes is how large the files of s are together.
func (s Skill) Bytes() (n int64) {
	for _, f := range s.Files {
		n += f.Size
	}
	return n
}

// Sum is the SHA-256, in hexadecimal, of all that s is made of: SKILL.md, and
// names, modes and contents of its files, which are read for it.
func (s Skill) Sum() (string, error) {
	contents, err := s.read()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%x\n", s.sum)
	for i, f := range s.Files {
		fmt.Fprintf(h, "%q %v %x\n", f.Path, f.Executable, sha256.Sum256(contents[i]))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Set is what was found.
type Set struct {
	// Skills are those that are in order, by name.
	Skills []Skill
	// Problems are what is wrong with others, and warnings, in the order in which
	// they were found.
	Problems []Problem
}

// Problem is something wrong with a skill, which is passed over for it, or a
// Warning about one that is not.
type Problem struct {
	// Skill is the name of its folder; empty where the whole Source is meant.
	Skill string `json:"skill,omitempty"`
	// File is what it is about, with its Source; Line counts from 1, 0 is all of it.
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Text    string `json:"text"`
	Warning bool   `json:"warning,omitempty"`

	folder string
}

// String has it on one line. File may have any bytes in it, as names of files do.
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

// Folder is the folder of the skill that it is about, with its Source.
func (p Problem) Folder() string { return p.folder }

// Find is the skill of a name.
func (s *Set) Find(name string) (Skill, bool) {
	i, ok := slices.BinarySearchFunc(s.Skills, name, func(a Skill, b string) int { return cmp.Compare(a.Name, b) })
	if !ok {
		return Skill{}, false
	}
	return s.Skills[i], true
}

// MissingError says that there is no skill of a name, or none that is in order.
type MissingError struct {
	Name string
	// Nearest is what may have been meant; "" where nothing is near.
	Nearest string
	// Problem is what is wrong with the skill of this name, if there is one.
	Problem *Problem
}

// Error implements error; the name is bounded and quoted.
func (e *MissingError) Error() string {
	switch {
	case e.Problem != nil:
		return fmt.Sprintf("the skill %.80q is not in order: %s", e.Name, e.Problem)
	case e.Nearest != "":
		return fmt.Sprintf("there is no skill %.80q; did you mean %s?", e.Name, e.Nearest)
	}
	return fmt.Sprintf("there is no skill %.80q; see mini skills list", e.Name)
}

// Use is the skills of these names, by name, each once; All stands for every one
// of the set. The error of a name that is missing is a *MissingError. Files that
// are larger than MaxUsed together are an error, too.
func (s *Set) Use(names []string) ([]Skill, error) {
	var use []Skill
	for _, name := range names {
		if name == All {
			use = append(use, s.Skills...)
			continue
		}
		one, ok := s.Find(name)
		if !ok {
			return nil, s.missing(name)
		}
		use = append(use, one)
	}
	slices.SortStableFunc(use, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	use = slices.CompactFunc(use, func(a, b Skill) bool { return a.Name == b.Name })
	var bytes int64
	for _, one := range use {
		bytes += one.Bytes()
	}
	if bytes > MaxUsed {
		return nil, fmt.Errorf("the files of %d skills are %d MB together, more than %d", len(use), bytes>>20, MaxUsed>>20)
	}
	return use, nil
}

func (s *Set) missing(name string) error {
	e := &MissingError{Name: name}
	for _, p := range s.Problems {
		if p.Skill == name && (e.Problem == nil || e.Problem.Warning && !p.Warning) {
			e.Problem = &p
		}
	}
	if e.Problem != nil {
		return e
	}
	var names []string
	for _, one := range s.Skills {
		names = append(names, one.Name)
	}
	e.Nearest = nearest(name, names)
	return e
}

// nearest is the name that somebody may have meant: one that begins with it, has
// a word that does, or takes few letters to come to.
func nearest(name string, names []string) string {
	name = strings.ToLower(name)
	if name == "" || len(name) > MaxName {
		return ""
	}
	best, distance := "", len(name)/2+1
	for _, n := range names {
		word := func(w string) bool { return len(name) > 2 && strings.HasPrefix(w, name) }
		if strings.HasPrefix(n, name) || slices.ContainsFunc(strings.Split(n, "-"), word) {
			return n
		}
		if d := levenshtein.ComputeDistance(name, n); d < distance {
			best, distance = n, d
		}
	}
	if best != "" || len(name) < alike {
		return best
	}
	for _, n := range names { // bisect for bisecting-regressions
		if strings.Contains(n, name[:alike]) {
			return n
		}
	}
	return ""
}

// alike is how many letters at the beginning make two names related.
const alike = 5
