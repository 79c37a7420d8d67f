package transport

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/minibench/mini/model"
)

// MaxResponse bounds an answer, in bytes.
const MaxResponse = 64 << 20

// Fields is what every request's body gets on top: the user's own fields, but
// for keys and those that have a place of their own.
func Fields(kwargs map[string]any, own ...string) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	for name, value := range kwargs {
		switch {
		case slices.Contains(own, name):
			return nil, fmt.Errorf("model kwargs: %q cannot be set here", name)
		case name == "api_key" || SecretHeader(name):
			return nil, fmt.Errorf("model kwargs: %q does not belong into a request; keys come from the environment", name)
		}
		b, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("model kwargs: %s: %w", name, err)
		}
		fields[name] = b
	}
	return fields, nil
}

// Broken is an answer that makes no sense; asking again may help.
func Broken(format string, args ...any) error {
	return &model.Error{Status: model.ProviderError, Retryable: true, Err: fmt.Errorf(format, args...)}
}

// Foreign is an answer that is none of an API: it may be a bad moment, or
// another kind of server.
func Foreign(hint, format string, args ...any) error {
	return &model.Error{Status: model.ProviderError, Retryable: true, Suspect: true, Err: fmt.Errorf(format, args...), Hint: hint}
}
