// Package usage marks errors that stop a command before it runs anything: the
// user has to fix the command line, a file or this machine first. mini exits
// with code 2 for these errors.
package usage

import "fmt"

// Error is an error that stopped a command before it ran anything.
type Error struct{ Err error }

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the marked error.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error with the text of fmt.Errorf.
func Errorf(format string, args ...any) error {
	return &Error{fmt.Errorf(format, args...)}
}

// Wrap marks an error that stopped a command before it ran anything. The text of
// the error stays the same, and a nil error stays nil.
func Wrap(err error) error {
	if err == nil {
		return nil
	}
	return &Error{err}
}
