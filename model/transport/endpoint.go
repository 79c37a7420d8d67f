package transport

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Endpoint is whom a provider asks, and how: what the configurations of all
// providers have in common. Printed, it says only whether there is a key, and of
// headers only the names.
type Endpoint struct {
	Name    string // of the model
	BaseURL string
	Key     string
	Stream  bool
	Kwargs  map[string]any
	Headers map[string]string
}

// Validate returns the first thing that is wrong, as a sentence for the user.
// The path is what requests put behind the base URL, and users sometimes too.
func (e Endpoint) Validate(path string) error {
	if e.Name == "" {
		return errors.New("model name is missing")
	}
	u, err := url.Parse(e.BaseURL)
	switch {
	case err != nil:
		return errors.New("base URL cannot be parsed") // the error would quote it
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return fmt.Errorf("base URL %s: want http:// or https:// and a host", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return fmt.Errorf("base URL of %s: want no user, query or fragment; keys come from the environment", u.Host)
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), path):
		return fmt.Errorf("base URL %s: leave %s away", u, path)
	case strings.ContainsFunc(e.Key, control):
		return errors.New("the API key has a control character in it")
	}
	return CheckHeaders(e.Headers)
}

// Format implements fmt.Formatter, for every verb: the key is never printed.
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
