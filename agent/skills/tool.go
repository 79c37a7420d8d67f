package skills

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/env"
)

// ToolName is what the tool is called.
const ToolName = "skill"

// DefaultDir is where the files of skills are in a sandbox that has its own file
// system: always the same place, so that commands can be run again elsewhere.
const DefaultDir = "/tmp/mini-skills"

// Options say how a Tool works.
type Options struct {
	// Dir makes the folder, an absolute path in the sandbox, for files of skills;
	// it is called once, when the sandbox is there, and only where a skill has
	// files. nil is DefaultDir. On the host it should be a new folder for each
	// attempt, of which the caller gets rid.
	Dir func() (string, error)
}

// Bundle is skills in use and their files, read once for all attempts.
type Bundle struct {
	use  []Skill
	tree []byte // a tar stream; nil where there are no files
}

// NewBundle reads the files of skills, see Set.Use. Nothing is read after it.
func NewBundle(use []Skill) (*Bundle, error) {
	tree, err := pack(use)
	if err != nil {
		return nil, err
	}
	return &Bundle{use, tree}, nil
}

// Skills are those in use, by name. They are not to be changed.
func (b *Bundle) Skills() []Skill { return b.use }

// Abilities are they as prompts tell of them, see tools.Config.
func (b *Bundle) Abilities() []agent.Ability {
	var all []agent.Ability
	for _, s := range b.use {
		all = append(all, agent.Ability{Name: s.Name, Usage: ToolName + " " + s.Name, About: s.Description})
	}
	return all
}

// Tool makes the tool "skill" for one attempt.
func (b *Bundle) Tool(o Options) *Tool { return &Tool{Bundle: b, options: o} }

// Tool prints the texts of skills, and puts their files into the sandbox. It
// belongs to one attempt.
type Tool struct {
	*Bundle
	options Options

	mu      sync.Mutex
	dir     string // empty until the files are there
	missing string // why they are not
}

var (
	_ tools.Tool     = (*Tool)(nil)
	_ tools.Preparer = (*Tool)(nil)
)

// Spec implements tools.Tool.
func (t *Tool) Spec() tools.Spec {
	return tools.Spec{
		Name: ToolName, Usage: ToolName + " [NAME]",
		About:     "prints the text of a skill; without a name the list of skills",
		MaxOutput: MaxText + MaxFiles*(MaxPath+64) + 4096,
	}
}

// Called is what goes on record of a call.
type Called struct {
	Skill   string `json:"skill"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source"`
	Dir     string `json:"dir,omitempty"`
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
	one, ok := (&Set{Skills: t.use}).Find(name)
	if !ok {
		return tools.Result{}, tools.Usagef("%s", t.unknown(name))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	dir := ""
	if t.dir != "" && len(one.Files) > 0 {
		dir = path.Join(t.dir, one.Name)
	}
	return tools.Result{
		Output:  t.text(one, dir),
		Details: Called{Skill: one.Name, Version: one.Version, Source: one.Source, Dir: dir},
	}, nil
}

func (t *Tool) list() string {
	var b strings.Builder
	for _, s := range t.use {
		fmt.Fprintf(&b, "%s: %s\n", s.Name, s.Description)
	}
	if len(t.use) == 0 {
		return "there are no skills\n"
	}
	b.WriteString("\nmini-tool skill NAME prints the text of one.\n")
	return b.String()
}

func (t *Tool) unknown(name string) string {
	var names []string
	for _, s := range t.use {
		names = append(names, s.Name)
	}
	text := fmt.Sprintf("there is no skill %.80q", name)
	if near := nearest(name, names); near != "" {
		return text + "; did you mean " + near + "?"
	}
	if len(names) == 0 {
		return text + "; there are none"
	}
	return text + "; mini-tool skill lists them"
}

// text is a skill as the model reads it: where its files are comes first, since
// the end of a long output may be cut.
func (t *Tool) text(s Skill, dir string) string {
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
		fmt.Fprintf(&b, "Its files are not here: %s\n", t.missing)
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

// Prepare puts the files of the skills into the sandbox. Where that fails, but the
// sandbox goes on, the texts can still be read, and say what is missing.
func (t *Tool) Prepare(ctx context.Context, box env.Environment) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir != "" { // a child in the same sandbox prepares once more
		return nil
	}
	if t.tree == nil {
		return nil
	}
	err := t.put(ctx, box)
	if _, lost := errors.AsType[*env.Error](err); lost || ctx.Err() != nil {
		return err
	}
	if err != nil {
		t.missing = oneLine(err.Error())
	}
	return nil
}

func (t *Tool) put(ctx context.Context, box env.Environment) error {
	carrier, ok := env.FilesOf(box)
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
	if err := carrier.Put(ctx, dir, bytes.NewReader(t.tree)); err != nil {
		return err
	}
	t.dir = dir
	return nil
}

// longAgo is the time of all files, so that they are the same each time.
var longAgo = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// pack is the tree of all files, in folders by the names of skills; nil for none.
// Nobody may write to them. Git leaves them alone, where their folder is in a
// working tree, as that of a repository in / is.
func pack(use []Skill) ([]byte, error) {
	p := &packer{folders: map[string]bool{}}
	p.tar = tar.NewWriter(&p.tree)
	for _, s := range use {
		contents, err := s.read()
		if err != nil {
			return nil, err
		}
		for i, f := range s.Files {
			mode := int64(0o444)
			if f.Executable {
				mode = 0o555
			}
			if err := p.file(path.Join(s.Name, f.Path), contents[i], mode); err != nil {
				return nil, err
			}
		}
	}
	if len(p.folders) == 0 {
		return nil, nil
	}
	if err := p.file(".gitignore", []byte("*\n"), 0o444); err != nil {
		return nil, err
	}
	if err := p.tar.Close(); err != nil {
		return nil, fmt.Errorf("pack skills: %w", err)
	}
	return p.tree.Bytes(), nil
}

type packer struct {
	tree    bytes.Buffer
	tar     *tar.Writer
	folders map[string]bool
}

func (p *packer) file(name string, content []byte, mode int64) error {
	if err := p.folder(path.Dir(name)); err != nil {
		return err
	}
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content)), ModTime: longAgo}
	if err := p.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("pack skills: %w", err)
	}
	if _, err := p.tar.Write(content); err != nil {
		return fmt.Errorf("pack skills: %w", err)
	}
	return nil
}

// folder makes a folder and those around it, but for the top, which may be one
// that others use.
func (p *packer) folder(name string) error {
	if name == "." || p.folders[name] {
		return nil
	}
	if err := p.folder(path.Dir(name)); err != nil {
		return err
	}
	p.folders[name] = true
	h := &tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o555, ModTime: longAgo}
	if err := p.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("pack skills: %w", err)
	}
	return nil
}
