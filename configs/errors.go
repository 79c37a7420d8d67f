package configs

import (
	"errors"
	"fmt"
)

// ErrConfig is wrapped by every error about a configuration.
var ErrConfig = errors.New("configuration")

// configError is an error about a setting; its text is a message for the user.
type configError struct{ text string }

func (e *configError) Error() string { return e.text }
func (e *configError) Unwrap() error { return ErrConfig }

// configErrors are several errors. Error returns only the first one, to keep the
// message on one line.
type configErrors []error

func (e configErrors) Error() string {
	return fmt.Sprintf("%v (and %d more; mini config check shows all)", e[0], len(e)-1)
}

func (e configErrors) Unwrap() []error { return e }

// KeyError is an invalid setting that another package found.
type KeyError struct {
	Key  string // dotted
	Text string // what is wrong
}

// KeyErrors returns an error for settings that other packages found invalid, with the
// origin of each; nil for none.
func (r *Resolved) KeyErrors(found ...KeyError) error {
	var errs []error
	for _, e := range found {
		errs = append(errs, r.errorf(e.Key, "%s", e.Text))
	}
	return join(errs)
}

// join returns nil for no errors, a single error as it is, and several as configErrors.
func join(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return configErrors(errs)
}

// SplitErrors returns the single errors in an error of this package. For any other error
// it returns that error, and for nil nothing.
func SplitErrors(err error) []error {
	if err == nil {
		return nil
	}
	if several, ok := errors.AsType[configErrors](err); ok {
		return several
	}
	return []error{err}
}
