package configs

import (
	"errors"
	"fmt"
)

// ErrConfig is wrapped by every mistake in a configuration.
var ErrConfig = errors.New("configuration")

// mistake is an error about a place in a layer; its text is made for the user.
type mistake struct{ text string }

func (m *mistake) Error() string { return m.text }
func (m *mistake) Unwrap() error { return ErrConfig }

// mistakes are several that were found together. As one error they are the
// first, so that a message stays on its line.
type mistakes []error

func (m mistakes) Error() string {
	return fmt.Sprintf("%v (and %d more; mini config check shows all)", m[0], len(m)-1)
}

func (m mistakes) Unwrap() []error { return m }

// Wrong is a setting that makes no sense, as somebody else found.
type Wrong struct {
	Key  string // dotted
	Text string // what is wrong with it
}

// Mistakes is the error for settings that make no sense where they are used:
// each with the place where it was made. It is nil for none.
func (r *Resolved) Mistakes(found ...Wrong) error {
	var errs []error
	for _, w := range found {
		errs = append(errs, r.errorf(w.Key, "%s", w.Text))
	}
	return joined(errs)
}

// joined is nil, the only error, or all of them.
func joined(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return mistakes(errs)
}

// All returns the mistakes that an error of this package stands for, each on a
// line of its own. Other errors are returned as they are, nil as none.
func All(err error) []error {
	if err == nil {
		return nil
	}
	if m, ok := errors.AsType[mistakes](err); ok {
		return m
	}
	return []error{err}
}
