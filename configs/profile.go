package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// profilePrefix begins the names of the layers of profiles that come with mini.
const profilePrefix = "--profile "

// profileExt ends the names of files of profiles.
const profileExt = ".yaml"

// maxProfiles bounds the files of a folder of profiles that are looked at.
const maxProfiles = 1000

// maxProfileName bounds the name of a profile, in characters.
const maxProfileName = 64

// isProfileName says whether a profile may be called so; whatever else is a path.
// No pattern: one that counts signs of all scripts takes milliseconds to be made.
func isProfileName(name string) bool {
	for i, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && (i == 0 || !strings.ContainsRune("._-", r)) {
			return false
		}
	}
	return name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxProfileName
}

// Profile is a layer that bundles what makes an agent of a kind: its model,
// prompts, tools, skills, memory and limits.
type Profile struct {
	Name string `json:"name"`
	// About is the first line of the comment at its head.
	About string `json:"about,omitempty"`
	// Path is its file; empty for those that come with mini.
	Path string `json:"path,omitempty"`
}

// Profiles are those in dirs and those that come with mini, by name. Of two with
// one name the first counts. A folder that is not there has none.
func Profiles(dirs ...string) ([]Profile, error) {
	byName := map[string]Profile{}
	add := func(p Profile, text []byte) {
		p.Name = strings.TrimSuffix(filepath.Base(p.Name), profileExt)
		p.About = firstComment(text)
		if _, known := byName[p.Name]; !known && isProfileName(p.Name) {
			byName[p.Name] = p
		}
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, &mistake{fmt.Sprintf("%s: %s", dir, reason(err))}
		}
		for _, e := range entries[:min(len(entries), maxProfiles)] {
			if path := filepath.Join(dir, e.Name()); filepath.Ext(path) == profileExt {
				text, _ := readBounded(path) // who asks for it is told what is wrong
				add(Profile{Name: e.Name(), Path: path}, text)
			}
		}
	}
	files, err := fs.Glob(shipped, profilesDir+"/*"+profileExt)
	if err != nil {
		return nil, fmt.Errorf("list profiles: %w", err)
	}
	for _, name := range files {
		text, err := shipped.ReadFile(name)
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

// ReadProfile reads a profile by its name, from dirs or what comes with mini, or
// by the path of its file: what has a slash or ends in .yaml is a path.
func ReadProfile(name string, dirs ...string) (Layer, error) {
	if strings.ContainsRune(name, filepath.Separator) || slices.Contains([]string{profileExt, ".yml"}, filepath.Ext(name)) {
		l, err := ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			err = &mistake{fmt.Sprintf("--profile %s: no such file", shown(name))}
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
		text, err := shipped.ReadFile(profilesDir + "/" + name + profileExt)
		if err != nil {
			return Layer{}, fmt.Errorf("read profile: %w", err)
		}
		l, err := parse(profilePrefix+name, text, "")
		l.line = false // it is no file of the user's
		return l, err
	}
	text := fmt.Sprintf("--profile %s: there is no such profile; ", shown(name))
	if near := Nearest(name, names); near != "" {
		return Layer{}, &mistake{text + "did you mean " + near + "?"}
	}
	return Layer{}, &mistake{text + "there are " + strings.Join(names, ", ") + ", and FILE.yaml is taken too"}
}

// firstComment is the first line of the comment that a file begins with.
func firstComment(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	about, ok := strings.CutPrefix(line, "#")
	if !ok {
		return ""
	}
	return strings.TrimSpace(about)
}
