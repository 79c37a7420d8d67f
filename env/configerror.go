package env

import (
	"errors"
	"fmt"
)

// ConfigError is a setting that is invalid, or that the engine or the cluster refuses. A
// retry fails in the same way.
type ConfigError struct {
	Key  string // name of the setting in the configuration, below "environment"
	Text string // what is wrong, and what would be valid
}

func (e *ConfigError) Error() string { return e.Key + ": " + e.Text }

// ConfigErrorList collects errors in the order they are found; errors.Join joins them.
type ConfigErrorList []error

// Add adds a *ConfigError.
func (l *ConfigErrorList) Add(key, format string, args ...any) {
	*l = append(*l, &ConfigError{Key: key, Text: fmt.Sprintf(format, args...)})
}

// ConfigErrors returns the *ConfigError values joined in an error; none for other
// errors.
func ConfigErrors(err error) []*ConfigError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // errors.AsType finds the first only
		var found []*ConfigError
		for _, e := range joined.Unwrap() {
			found = append(found, ConfigErrors(e)...)
		}
		return found
	}
	if e, ok := errors.AsType[*ConfigError](err); ok {
		return []*ConfigError{e}
	}
	return nil
}
