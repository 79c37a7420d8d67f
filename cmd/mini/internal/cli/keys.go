package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/model/transport"
)

// keyVariables are the variables with keys that mini itself uses: those of all
// models, also of summaries and of children, and those of deciders and MCP servers.
// No command sees them unless environment.forward_env names them.
func keyVariables(cfg *configs.Resolved) []string {
	names := modelKeys(cfg)
	if cfg.Agents.Enabled {
		for _, profile := range cfg.Agents.Profiles {
			if child, err := childConfig(cfg, profile); err == nil { // newDelegateTools returns the error
				names = append(names, modelKeys(child)...)
			}
		}
	}
	names = append(names, cfg.Policy.Decider.TokenEnv)
	for _, s := range cfg.Tools.MCP {
		names = append(names, s.TokenEnv)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

func modelKeys(cfg *configs.Resolved) (names []string) {
	for _, one := range modelsOf(cfg) {
		names = append(names, one.Model.APIKeyEnv)
	}
	if one := summaryOf(cfg); one != nil {
		names = append(names, one.Model.APIKeyEnv)
	}
	return names
}

// withoutValues takes the values of variables that commands are not to see out of
// what is written to files: a command can find them elsewhere on this machine.
func withoutValues(cfg *configs.Resolved) func([]byte) []byte {
	names := keyVariables(cfg)
	var values []string
	add := func(name, value string) {
		if value = strings.TrimSpace(value); (local.Secret(name) || slices.Contains(names, name)) && isKey(value) {
			values = append(values, value)
		}
	}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		add(name, value)
	}
	for name, value := range cfg.Environment.Env {
		add(name, value)
	}
	return transport.NewRedactor(values...).Bytes
}

// How long a value has to be to count as a key, in bytes: words that stand for
// none at servers of one's own ("not-needed", "lm-studio") are in many files, and a
// patch must keep them.
const (
	leastKey   = 8 // of one with a digit
	leastWords = 20
)

// isKey reports whether a value looks like a key, and is not the path of a file
// that has one.
func isKey(value string) bool {
	if filepath.IsAbs(value) && exists(value) {
		return false
	}
	return len(value) >= leastWords || len(value) >= leastKey && strings.ContainsAny(value, "0123456789")
}
