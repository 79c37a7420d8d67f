package envopen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/model/transport"
)

// SecretVariables returns the names of the environment variables that hold mini's keys:
// those for models (also of summaries and subagents), the policy decider and MCP
// servers. Commands do not see these variables unless environment.forward_env names
// them.
func SecretVariables(cfg *configs.Resolved) []string {
	names := modelKeys(cfg)
	if cfg.Agents.Enabled {
		for _, profile := range cfg.Agents.Profiles {
			if profileConfig, err := configs.WithProfile(cfg, profile); err == nil { // runner/setup returns the error
				names = append(names, modelKeys(profileConfig)...)
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
	for _, m := range configs.ModelConfigs(cfg) {
		names = append(names, m.Model.APIKeyEnv)
	}
	if m := configs.SummaryModelConfig(cfg); m != nil {
		names = append(names, m.Model.APIKeyEnv)
	}
	return names
}

// Redact returns a function that removes the values of secret variables from
// data that is written to files, since commands may find these values on this
// machine. It leaves values that do not look like keys (see isKey).
func Redact(cfg *configs.Resolved) func([]byte) []byte {
	names := append(SecretVariables(cfg), cfg.Environment.TaskEnv...)
	var values []string
	add := func(name, value string) {
		if value = strings.TrimSpace(value); (local.IsSecret(name) || slices.Contains(names, name)) && isKey(value) {
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
	if key := cfg.OwnModelKey(); isKey(key) {
		values = append(values, key)
	}
	return transport.NewRedactor(values...).Bytes
}

// Minimum lengths of a key, in bytes; minKeyWithDigit is for values with a digit.
// Shorter values are placeholders for local servers ("not-needed", "lm-studio"), which
// occur in many patches.
const (
	minKeyWithDigit = 8
	minKey          = 20
)

// isKey reports whether a value is long enough for a key, and is not the absolute path
// of an existing file.
func isKey(value string) bool {
	if filepath.IsAbs(value) {
		if _, err := os.Stat(value); err == nil {
			return false
		}
	}
	return len(value) >= minKey || len(value) >= minKeyWithDigit && strings.ContainsAny(value, "0123456789")
}
