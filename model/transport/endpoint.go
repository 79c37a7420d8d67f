package transport

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
)

// Endpoint holds the settings that all providers share. Its printed form shows
// whether a key is set, but not the key, and only the names of headers.
type Endpoint struct {
	Name    string // of the model
	BaseURL string
	Key     string
	Stream  bool
	Kwargs  map[string]any
	Headers map[string]string
}

// Validate returns the first error, for the user. path is the path that requests
// append to the base URL: a base URL that ends with it is an error.
func (e Endpoint) Validate(path string) error {
	if e.Name == "" {
		return errors.New("model name is missing")
	}
	u, err := url.Parse(e.BaseURL)
	switch {
	case err != nil:
		return errors.New("base URL cannot be parsed") // the parse error would quote it
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return fmt.Errorf("base URL %s: want http:// or https:// and a host", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return fmt.Errorf("base URL of %s: want no user, query or fragment; set keys in the environment", u.Host)
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), path):
		return fmt.Errorf("base URL %s: remove %s from its end", u, path)
	case model.CheckPlaceholders(e.BaseURL) != nil:
		return fmt.Errorf("base URL: %w", model.CheckPlaceholders(e.BaseURL))
	case strings.ContainsFunc(e.Key, isControl):
		return errors.New("the API key contains a control character")
	}
	return CheckHeaders(e.Headers)
}

// Format implements fmt.Formatter. It never prints the key, for any verb.
func (e Endpoint) Format(f fmt.State, _ rune) {
	key := "none"
	if e.Key != "" {
		key = "set"
	}
	base := "invalid"
	if u, err := url.Parse(e.BaseURL); err == nil {
		base = u.Redacted()
	}
	_, _ = fmt.Fprintf(f, "{%s at %s, key %s, stream %t, kwargs %v, headers %v}",
		e.Name, base, key, e.Stream, e.Kwargs, slices.Sorted(maps.Keys(e.Headers)))
}

// CheckHeaders returns an error for the first user-defined header that is invalid
// or not allowed. Headers with secrets are not allowed, because headers are
// written to files.
func CheckHeaders(headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch value := headers[name]; {
		case !IsHeaderName(name) || strings.ContainsFunc(value, isControl):
			return fmt.Errorf("header %q: invalid HTTP header name or value", name)
		case IsSecretHeader(name):
			return fmt.Errorf("header %q: set keys in the environment", name)
		case isReservedHeader(name):
			return fmt.Errorf("header %q: remove it; mini sets it", name)
		}
	}
	return nil
}

// IsHeaderName reports whether name is a valid header name.
func IsHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// IsSecretHeader reports whether a header's value is a secret, such as an API key.
func IsSecretHeader(name string) bool {
	switch strings.ToLower(name) {
	case "x-api-key", "api-key", "authorization", "proxy-authorization", "cookie":
		return true
	}
	return false
}

// isReservedHeader reports whether a header controls the transfer; changing it
// would break requests or responses.
func isReservedHeader(name string) bool {
	switch strings.ToLower(name) {
	case "host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding",
		"accept", "accept-encoding", "te", "trailer", "upgrade", "expect":
		return true
	}
	return false
}
