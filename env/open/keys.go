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

// KeyVariables returns the names of the variables with keys that mini uses:
// those of models, including summaries and subagents, policy deciders and MCP
// servers. Commands do not see them unless environment.forward_env names them.
func KeyVariables(cfg *configs.Resolved) []string {
	names := modelKeys(cfg)
	if cfg.Agents.Enabled {
		for _, profile := range cfg.Agents.Profiles {
			if child, err := configs.ForProfile(cfg, profile); err == nil { // setup returns the error
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
	for _, one := range configs.Models(cfg) {
		names = append(names, one.Model.APIKeyEnv)
	}
	if one := configs.SummaryModel(cfg); one != nil {
		names = append(names, one.Model.APIKeyEnv)
	}
	return names
}

// Redact returns a function that removes the values of secret variables from
// data that is written to files, since commands may find these values on this
// machine.
func Redact(cfg *configs.Resolved) func([]byte) []byte {
	names := KeyVariables(cfg)
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
	return transport.NewRedactor(values...).Bytes
}

// Minimum lengths of a key, in bytes. Shorter values are placeholders for local
// servers ("not-needed", "lm-studio"), which occur in many patches.
const (
	minKeyWithDigit = 8
	minKey          = 20
)

// isKey reports whether a value looks like a key, and is not the path of a key
// file.
func isKey(value string) bool {
	if filepath.IsAbs(value) {
		if _, err := os.Stat(value); err == nil {
			return false
		}
	}
	return len(value) >= minKey || len(value) >= minKeyWithDigit && strings.ContainsAny(value, "0123456789")
}
