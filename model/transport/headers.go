package transport

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
