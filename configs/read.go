package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Read takes what -c was given: key.sub=value, a file, or the name of a
// configuration that comes with mini, or did with mini-swe-agent. A file that
// is not where its name says is looked for in dirs.
func Read(arg string, dirs ...string) (Layer, error) {
	if key, value, ok := strings.Cut(arg, "="); ok {
		return Setting("-c "+shownSetting(key, value), key, value)
	}
	if arg == "" {
		return Layer{}, &mistake{"-c: it is empty; it takes a YAML file or key.sub=value"}
	}
	for _, path := range candidates(arg, dirs) {
		if l, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
			return l, err
		}
	}
	name := strings.TrimSuffix(filepath.Base(arg), ".yaml")
	peer, ok := peerConfigs[name]
	switch {
	case strings.ContainsRune(arg, filepath.Separator): // a path, as ./mini.yaml
	case peer.shipped != "":
		return Shipped(peer.shipped)
	case ok:
		return Layer{}, &mistake{fmt.Sprintf("-c %s: it comes with mini-swe-agent only; %s", arg, peer.answer)}
	default:
		if l, err := Shipped(name); err == nil {
			return l, nil
		}
	}
	return Layer{}, &mistake{fmt.Sprintf("-c %s: no such file; it takes a YAML file or key.sub=value", shown(arg))}
}

// candidates are the paths that the name of a file may mean.
func candidates(arg string, dirs []string) []string {
	names := []string{arg}
	if filepath.Ext(arg) == "" {
		names = append(names, arg+".yaml")
	}
	paths := names
	if filepath.IsAbs(arg) {
		return paths
	}
	for _, dir := range dirs {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// shownSetting is a setting as messages may show it: not at length, and no
// secret, of which one may stand in a URL.
func shownSetting(key, value string) string {
	if len(value) > 60 || strings.ContainsAny(value, "{[@") || LooksSecret(key[strings.LastIndexByte(key, '.')+1:]) {
		return key
	}
	return key + "=" + value
}
