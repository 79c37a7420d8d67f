package configs

import (
	"maps"
	"strings"

	"gopkg.in/yaml.v3"
)

// Hidden stands where a value was left out.
const Hidden = "(not shown)"

// Redacted is the configuration with every value left out whose name says that
// it is a secret; it is what may be written to files.
func (c Config) Redacted() Config {
	c.Environment.Env = redact(c.Environment.Env)
	return c
}

func redact(m map[string]string) map[string]string {
	m = maps.Clone(m)
	for name := range m {
		if LooksSecret(name) {
			m[name] = Hidden
		}
	}
	return m
}

// YAML is the redacted configuration as a file that can be read again.
func (c Config) YAML() ([]byte, error) {
	return yaml.Marshal(c.Redacted())
}

// LooksSecret goes by the name of a setting or variable.
func LooksSecret(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, end := range []string{"key", "token", "auth", "credentials"} {
		if name == end || strings.HasSuffix(name, "_"+end) {
			return true
		}
	}
	for _, part := range []string{"api_key", "apikey", "password", "passwd", "secret", "authorization", "access_token"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
