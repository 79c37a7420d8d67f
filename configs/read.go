package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ReadArg reads the argument of -c: key.sub=value, a file, or the name of a built-in
// configuration of mini or mini-swe-agent. It also looks for the file in dirs.
func ReadArg(arg string, dirs ...string) (Layer, error) {
	if key, value, ok := strings.Cut(arg, "="); ok {
		return ParseSetting("-c "+settingLabel(key, value), key, value)
	}
	if arg == "" {
		return Layer{}, &configError{"-c: it is empty; it takes a YAML file or key.sub=value"}
	}
	for _, path := range candidates(arg, dirs) {
		if l, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
			return l, err
		}
	}
	name := strings.TrimSuffix(filepath.Base(arg), ".yaml")
	migrated, ok := migratedConfigs[name]
	switch {
	case strings.ContainsRune(arg, filepath.Separator): // a path, for example ./mini.yaml
	case migrated.builtin != "":
		return ReadBuiltin(migrated.builtin)
	case ok:
		return Layer{}, &configError{fmt.Sprintf("-c %s: only mini-swe-agent has it; %s", arg, migrated.hint)}
	default:
		if l, err := ReadBuiltin(name); err == nil {
			return l, nil
		}
	}
	return Layer{}, &configError{fmt.Sprintf("-c %s: no such file; it takes a YAML file or key.sub=value", clipKey(arg))}
}

// candidates returns the paths to try for a file name.
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

// settingLabel returns a setting for messages. It omits a long value and one that may
// contain a secret, for example a URL.
func settingLabel(key, value string) string {
	if len(value) > 60 || strings.ContainsAny(value, "{[@") || LooksSecret(key[strings.LastIndexByte(key, '.')+1:]) {
		return key
	}
	return key + "=" + value
}
