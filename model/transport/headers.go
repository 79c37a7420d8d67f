package transport

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CheckHeaders returns the first of a user's own headers that cannot be sent,
// or must not be: keys are no headers, for these are written to files.
func CheckHeaders(headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch value := headers[name]; {
		case !HeaderName(name) || strings.ContainsFunc(value, control):
			return fmt.Errorf("header %q: not a name and a value as HTTP has them", name)
		case SecretHeader(name):
			return fmt.Errorf("header %q: keys come from the environment", name)
		case ownHeader(name):
			return fmt.Errorf("header %q: mini sets it itself; leave it out", name)
		}
	}
	return nil
}

// HeaderName says whether a header can have that name.
func HeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// SecretHeader says whether a header's value is a key.
func SecretHeader(name string) bool {
	switch strings.ToLower(name) {
	case "x-api-key", "api-key", "authorization", "proxy-authorization", "cookie":
		return true
	}
	return false
}

// ownHeader says whether a header is about how a request is sent: another value
// would break it, or the reading of its answer.
func ownHeader(name string) bool {
	switch strings.ToLower(name) {
	case "host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding",
		"accept", "accept-encoding", "te", "trailer", "upgrade", "expect":
		return true
	}
	return false
}
