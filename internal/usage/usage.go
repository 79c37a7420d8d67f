// Package usage marks errors that the user has to fix before anything is run:
// on the command line, in a file or on this machine. The command line exits
// with code 2 for them.
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

// Wrap marks an error of the preparations of a command. The text of the error
// stays the same, and a nil error stays nil.
func Wrap(err error) error {
	if err == nil {
		return nil
	}
	return &Error{err}
}
