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
	if l, ok, err := readPeerConfig(arg); ok {
		return l, err
	}
	if !strings.ContainsRune(arg, filepath.Separator) { // ./mini.yaml is a path
		if l, err := ReadBuiltin(strings.TrimSuffix(arg, yamlExt)); err == nil {
			return l, nil
		}
	}
	return Layer{}, &configError{fmt.Sprintf("-c %s: no such file; it takes a YAML file or key.sub=value", clipKey(arg))}
}

// findPeerConfig returns the configuration of mini in place of the one of mini-swe-agent that an argument
// of -c names. Those in a folder are also found by their names alone.
func findPeerConfig(arg string) (n OldName, ok bool) {
	name := strings.TrimSuffix(arg, yamlExt)
	if rest, found := strings.CutPrefix(name, "extra/"); found { // version 1 has the benchmarks there
		name = "benchmarks/" + rest
	}
	if n, ok = FindOldName("-c " + name); !ok && !strings.Contains(name, "/") {
		n, ok = FindOldName("-c benchmarks/" + name)
	}
	return n, ok
}

// readPeerConfig reads what mini has in place of a configuration that comes with mini-swe-agent; ok
// is false if arg names none.
func readPeerConfig(arg string) (l Layer, ok bool, err error) {
	n, ok := findPeerConfig(arg)
	switch {
	case !ok:
		return Layer{}, false, nil
	case n.New == "":
		return Layer{}, true, &configError{fmt.Sprintf("-c %s: only mini-swe-agent has it; %s", arg, n.Why)}
	}
	builtin, protocol, _ := strings.Cut(n.New, " agent.protocol=")
	if l, err = ReadBuiltin(builtin); err == nil && protocol != "" {
		setNode(l.root, []string{"agent", "protocol"}, scalar("!!str", protocol, 0))
	}
	return l, true, err
}

// PeerConfigNote says which configuration of mini an argument of -c names, if mini-swe-agent has
// another one of that name and there is no such file; "" otherwise.
func PeerConfigNote(arg string, dirs ...string) string {
	n, ok := findPeerConfig(arg)
	if !ok || n.New == "" {
		return ""
	}
	for _, path := range candidates(arg, dirs) {
		if _, err := os.Stat(path); err == nil {
			return ""
		}
	}
	return fmt.Sprintf("-c %s is mini's own configuration %s", arg, strings.Replace(n.New, " ", ", with ", 1))
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
