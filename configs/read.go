package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
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

// A peerConfig is what mini has in place of a configuration that comes with mini-swe-agent.
type peerConfig struct {
	builtin  string // the built-in configuration
	protocol string // the value of agent.protocol on top of it, if it differs
	hint     string // what to do instead, if mini has no such configuration
}

// peerConfigs are the configurations that come with mini-swe-agent, by their paths there without
// the extension. Those in a folder are also found by their names alone.
var peerConfigs = map[string]peerConfig{
	"default":                       {builtin: "mini"},
	"mini":                          {builtin: "mini"},
	"mini_textbased":                {builtin: "mini"},
	"default_xml":                   {builtin: "mini", protocol: "xml"},
	"benchmarks/swebench":           {builtin: "swebench"},
	"benchmarks/swebench_backticks": {builtin: "swebench"},
	"benchmarks/swebench_xml":       {builtin: "swebench", protocol: "xml"},
	"benchmarks/swebench_toolcall":  {builtin: "swebench", protocol: "tools"},
	"benchmarks/swebench_modal":     {hint: "mini has no Modal yet; leave it out for Docker"},
	"benchmarks/programbench":       {hint: "mini has no ProgramBench"},
}

// findPeerConfig returns the configuration of mini-swe-agent that an argument of -c names.
func findPeerConfig(arg string) (c peerConfig, ok bool) {
	name := strings.TrimSuffix(arg, yamlExt)
	for _, folder := range []string{"extra/", "benchmarks/"} { // version 1 has the benchmarks in extra
		if rest, found := strings.CutPrefix(name, folder); found {
			c, ok = peerConfigs["benchmarks/"+rest]
			return c, ok
		}
	}
	if c, ok = peerConfigs[name]; !ok {
		c, ok = peerConfigs["benchmarks/"+name]
	}
	return c, ok
}

// readPeerConfig reads what mini has in place of a configuration that comes with mini-swe-agent; ok
// is false if arg names none.
func readPeerConfig(arg string) (l Layer, ok bool, err error) {
	c, ok := findPeerConfig(arg)
	switch {
	case !ok:
		return Layer{}, false, nil
	case c.hint != "":
		return Layer{}, true, &configError{fmt.Sprintf("-c %s: only mini-swe-agent has it; %s", arg, c.hint)}
	}
	if l, err = ReadBuiltin(c.builtin); err != nil || c.protocol == "" {
		return l, true, err
	}
	agent := child(l.root, "agent")
	agent.Content = append(agent.Content,
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "protocol"},
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: c.protocol})
	return l, true, nil
}

// PeerConfigNote says which configuration of mini an argument of -c names, if mini-swe-agent has
// another one of that name and there is no such file; "" otherwise.
func PeerConfigNote(arg string, dirs ...string) string {
	c, ok := findPeerConfig(arg)
	if !ok || c.hint != "" {
		return ""
	}
	for _, path := range candidates(arg, dirs) {
		if _, err := os.Stat(path); err == nil {
			return ""
		}
	}
	note := fmt.Sprintf("-c %s is mini's own configuration %s", arg, c.builtin)
	if c.protocol != "" {
		note += ", with agent.protocol=" + c.protocol
	}
	return note
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
