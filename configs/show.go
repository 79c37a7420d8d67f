package configs

import (
	"maps"
	"strings"

	"gopkg.in/yaml.v3"
)

// RedactedValue replaces a value that is not shown.
const RedactedValue = "(not shown)"

// Redacted returns the configuration with RedactedValue for the values in environment.env
// whose names suggest a secret. Only redacted configurations may be written to files.
func (c Config) Redacted() Config {
	c.Environment.Env = redact(c.Environment.Env)
	return c
}

func redact(m map[string]string) map[string]string {
	m = maps.Clone(m)
	for name := range m {
		if LooksSecret(name) {
			m[name] = RedactedValue
		}
	}
	return m
}

// YAML returns the redacted configuration as a file that ReadFile accepts.
func (c Config) YAML() ([]byte, error) {
	return yaml.Marshal(c.Redacted())
}

// LooksSecret reports whether the name of a setting or variable suggests a secret.
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
