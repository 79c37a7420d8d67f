package skills

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/env"
)

// ToolName is the name of the tool.
const ToolName = "skill"

// DefaultDir is the directory for the files of skills in a sandbox with its own
// file system. It is the same in every attempt, so that recorded commands can
// be replayed.
const DefaultDir = "/tmp/mini-skills"

// Options configure a Tool.
type Options struct {
	// Dir creates the directory for the files of skills and returns its
	// absolute path in the sandbox. If a skill has files, Dir is called after
	// the sandbox has started, and not again once the files are copied. Nil
	// means DefaultDir. On the host, Dir should return a new directory per
	// attempt, which the creator of the Tool removes.
	Dir func() (string, error)
}

// Bundle holds the selected skills and their files, packed once for all
// attempts.
type Bundle struct {
	skills  []Skill
	archive []byte // a tar stream; nil if there are no files
}

// NewBundle packs the files of selected skills; see Set.Select.
func NewBundle(selected []Skill) (*Bundle, error) {
	archive, err := packFiles(selected)
	if err != nil {
		return nil, err
	}
	return &Bundle{selected, archive}, nil
}

// Skills returns the selected skills, sorted by name. They must not be
// modified.
func (b *Bundle) Skills() []Skill { return b.skills }

// Capabilities returns the skills as prompts list them; see tools.Config.
func (b *Bundle) Capabilities() []agent.Capability {
	var all []agent.Capability
	for _, s := range b.skills {
		all = append(all, agent.Capability{Name: s.Name, Usage: ToolName + " " + s.Name, Description: s.Description})
	}
	return all
}

// Tool returns the tool "skill" for one attempt.
func (b *Bundle) Tool(o Options) *Tool { return &Tool{Bundle: b, options: o} }

// Tool prints the texts of skills and copies their files into the sandbox. It
// belongs to one attempt.
type Tool struct {
	*Bundle
	options Options

	mu         sync.Mutex
	dir        string // empty until the files are copied
	filesError string // why the files could not be copied
}

var (
	_ tools.Tool     = (*Tool)(nil)
	_ tools.Preparer = (*Tool)(nil)
)

// Spec implements tools.Tool.
func (t *Tool) Spec() tools.Spec {
	return tools.Spec{
		Name: ToolName, Usage: ToolName + " [NAME]",
		Description: "prints the text of a skill; without a name the list of skills",
		MaxOutput:   MaxText + MaxFiles*(MaxPath+64) + 4096,
	}
}

// CallDetails are recorded with a call.
type CallDetails struct {
	Skill   string `json:"skill"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source"`
	Dir     string `json:"dir,omitempty"` // directory of the skill's files in the sandbox
}

// Call implements tools.Tool.
func (t *Tool) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	switch {
	case len(c.Args) == 0:
		return tools.Result{Output: t.list()}, nil
	case len(c.Args) > 1:
		return tools.Result{}, tools.Usagef("it takes one name, not %d arguments", len(c.Args))
	}
	name := strings.TrimSpace(c.Args[0])
	skill, ok := (&Set{Skills: t.skills}).Find(name)
	if !ok {
		return tools.Result{}, tools.Usagef("%s", t.unknownSkill(name))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	dir := ""
	if t.dir != "" && len(skill.Files) > 0 {
		dir = path.Join(t.dir, skill.Name)
	}
	return tools.Result{
		Output:  t.format(skill, dir),
		Details: CallDetails{Skill: skill.Name, Version: skill.Version, Source: skill.Source, Dir: dir},
	}, nil
}

func (t *Tool) list() string {
	var b strings.Builder
	for _, s := range t.skills {
		fmt.Fprintf(&b, "%s: %s\n", s.Name, s.Description)
	}
	if len(t.skills) == 0 {
		return "there are no skills\n"
	}
	b.WriteString("\nmini-tool skill NAME prints the text of one.\n")
	return b.String()
}

func (t *Tool) unknownSkill(name string) string {
	var names []string
	for _, s := range t.skills {
		names = append(names, s.Name)
	}
	text := fmt.Sprintf("there is no skill %.80q", name)
	if near := tools.Nearest(name, names); near != "" {
		return text + "; did you mean " + near + "?"
	}
	if len(names) == 0 {
		return text + "; there are none"
	}
	return text + "; mini-tool skill lists them"
}

// format returns a skill as the model reads it. The list of files comes first,
// because the end of a long output may be cut off.
func (t *Tool) format(s Skill, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "skill %s", s.Name)
	if s.Version != "" {
		fmt.Fprintf(&b, " %s", s.Version)
	}
	b.WriteString("\n")
	switch {
	case dir != "":
		fmt.Fprintf(&b, "Its files are in %s (read-only); paths in the text are relative to that folder:\n", dir)
		for _, f := range s.Files {
			kind := ""
			if f.Executable {
				kind = ", executable"
			}
			fmt.Fprintf(&b, "  %s (%d bytes%s)\n", f.Path, f.Size, kind)
		}
	case len(s.Files) > 0:
		fmt.Fprintf(&b, "Its files are not here: %s\n", t.filesError)
	}
	if s.AllowedTools != nil {
		names := strings.Join(s.AllowedTools, ", ")
		if names == "" {
			names = "no tool"
		}
		fmt.Fprintf(&b, "It is meant to be followed with these tools alone: %s\n", names)
	}
	b.WriteString("\n" + strings.TrimSpace(s.Text) + "\n")
	return b.String()
}

// Prepare copies the files of the skills into the sandbox. If copying fails but
// the sandbox still works, the tool still prints the skills, with the reason
// why their files are missing.
func (t *Tool) Prepare(ctx context.Context, sandbox env.Environment) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir != "" { // a subagent in the same sandbox calls Prepare again
		return nil
	}
	if t.archive == nil {
		return nil
	}
	err := t.copyFiles(ctx, sandbox)
	if _, sandboxFailed := errors.AsType[*env.Error](err); sandboxFailed || ctx.Err() != nil {
		return err
	}
	if err != nil {
		t.filesError = oneLine(err.Error())
	}
	return nil
}

func (t *Tool) copyFiles(ctx context.Context, sandbox env.Environment) error {
	files, ok := env.AsFiles(sandbox)
	if !ok {
		return errors.New("this sandbox does not take files")
	}
	dir := DefaultDir
	if t.options.Dir != nil {
		var err error
		if dir, err = t.options.Dir(); err != nil {
			return err
		}
	}
	if err := files.Put(ctx, dir, bytes.NewReader(t.archive)); err != nil {
		return err
	}
	t.dir = dir
	return nil
}

// fileTime is the modification time of all files, so that archives are
// reproducible.
var fileTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// packFiles returns a tar archive of all files, one directory per skill; nil if
// there are none. The files are read-only. A .gitignore hides them from git if
// their directory is in a working tree, such as a repository in /.
func packFiles(selected []Skill) ([]byte, error) {
	entries := map[string]*File{} // nil stands for a directory
	for _, s := range selected {
		for _, f := range s.Files {
			name := path.Join(s.Name, f.Path)
			entries[name] = &f
			for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
				entries[dir] = nil
			}
		}
	}
	if len(entries) == 0 {
		return nil, nil
	}
	entries[".gitignore"] = &File{data: []byte("*\n")}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, name := range slices.Sorted(maps.Keys(entries)) { // a directory comes before its files
		header := &tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o555, ModTime: fileTime}
		var data []byte
		if f := entries[name]; f != nil {
			data = f.data
			header = &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o444, Size: int64(len(data)), ModTime: fileTime}
			if f.Executable {
				header.Mode = 0o555
			}
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack skills: %w", err)
		}
		if _, err := w.Write(data); err != nil {
			return nil, fmt.Errorf("pack skills: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack skills: %w", err)
	}
	return archive.Bytes(), nil
}
