package configs

import (
	"errors"
	"fmt"
)

// ErrConfig is wrapped by every error about a configuration.
var ErrConfig = errors.New("configuration")

// configError is an error about a setting; its text is a message for the user.
type configError struct{ text string }

func (m *configError) Error() string { return m.text }
func (m *configError) Unwrap() error { return ErrConfig }

// configErrors are several errors. Error returns only the first one, to keep the
// message on one line.
type configErrors []error

func (m configErrors) Error() string {
	return fmt.Sprintf("%v (and %d more; mini config check shows all)", m[0], len(m)-1)
}

func (m configErrors) Unwrap() []error { return m }

// KeyError is an invalid setting that another package found.
type KeyError struct {
	Key  string // dotted
	Text string // what is wrong
}

// KeyErrors returns an error for settings that other packages found invalid, with the
// origin of each; nil for none.
func (r *Resolved) KeyErrors(found ...KeyError) error {
	var errs []error
	for _, w := range found {
		errs = append(errs, r.errorf(w.Key, "%s", w.Text))
	}
	return join(errs)
}

// join returns nil, the only error, or a configErrors.
func join(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return configErrors(errs)
}

// SplitErrors returns the single errors of an error of this package. It returns other
// errors as they are, and nothing for nil.
func SplitErrors(err error) []error {
	if err == nil {
		return nil
	}
	if m, ok := errors.AsType[configErrors](err); ok {
		return m
	}
	return []error{err}
}
