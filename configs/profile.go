package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// profilePrefix is the prefix of the layer names of built-in profiles.
const profilePrefix = "--profile "

// yamlExt is the extension of configuration files.
const yamlExt = ".yaml"

// Profile is a layer that defines a kind of agent: its model, prompts, tools, skills,
// memory and limits.
type Profile struct {
	Name string `json:"name"`
	// Description is the first line of the comment at the top.
	Description string `json:"about,omitempty"`
	// Path is the path of the file; empty for a built-in profile.
	Path string `json:"path,omitempty"`
}

// Profiles lists the profiles in dirs and the built-in ones, sorted by name. Of several
// profiles with the same name, it lists the one in the first of dirs, or the built-in one
// if dirs have none. A missing directory is not an error.
func Profiles(dirs ...string) ([]Profile, error) {
	byName := map[string]Profile{}
	add := func(p Profile, text []byte) {
		p.Name = strings.TrimSuffix(filepath.Base(p.Name), yamlExt)
		p.Description = firstComment(text)
		if _, known := byName[p.Name]; !known {
			byName[p.Name] = p
		}
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, &configError{fmt.Sprintf("%s: %s", dir, reason(err))}
		}
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); filepath.Ext(path) == yamlExt {
				text, _ := os.ReadFile(path) //nolint:gosec // ReadProfile reports the error
				add(Profile{Name: e.Name(), Path: path}, text)
			}
		}
	}
	files, err := fs.Glob(builtinFS, profilesDir+"/*"+yamlExt)
	if err != nil {
		return nil, fmt.Errorf("list profiles: %w", err)
	}
	for _, name := range files {
		text, err := builtinFS.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read profile: %w", err)
		}
		add(Profile{Name: name}, text)
	}
	all := make([]Profile, 0, len(byName))
	for _, p := range byName {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// ReadProfile reads a profile by name, from dirs or the built-in ones, or by path: an
// argument with a slash or the extension .yaml or .yml is a path.
func ReadProfile(name string, dirs ...string) (Layer, error) {
	if strings.ContainsRune(name, filepath.Separator) || slices.Contains([]string{yamlExt, ".yml"}, filepath.Ext(name)) {
		l, err := ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			err = &configError{fmt.Sprintf("--profile %s: no such file", clipKey(name))}
		}
		return l, err
	}
	all, err := Profiles(dirs...)
	if err != nil {
		return Layer{}, err
	}
	names := make([]string, len(all))
	for i, p := range all {
		if names[i] = p.Name; p.Name != name {
			continue
		}
		if p.Path != "" {
			return ReadFile(p.Path)
		}
		text, err := builtinFS.ReadFile(profilesDir + "/" + name + yamlExt)
		if err != nil {
			return Layer{}, fmt.Errorf("read profile: %w", err)
		}
		l, err := parse(profilePrefix+name, text, "")
		l.hasLines = false // the user cannot see the file
		return l, err
	}
	text := fmt.Sprintf("--profile %s: unknown profile; ", clipKey(name))
	if closest := ClosestName(name, names); closest != "" {
		return Layer{}, &configError{text + "did you mean " + closest + "?"}
	}
	return Layer{}, &configError{text + "use one of " + strings.Join(names, ", ") + ", or FILE.yaml"}
}

// firstComment returns the first line of the comment at the top of a file.
func firstComment(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	about, ok := strings.CutPrefix(line, "#")
	if !ok {
		return ""
	}
	return strings.TrimSpace(about)
}
