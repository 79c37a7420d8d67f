//go:build !linux

package process

import (
	"errors"
	"fmt"
)

// Ward is a child of this process that runs commands of its own; see the one
// for Linux.
type Ward struct{}

// NewWard is not available here: the helper runs on Linux only.
func NewWard(func() (int, error)) (*Ward, error) {
	return nil, fmt.Errorf("watch over a helper: %w", errors.ErrUnsupported)
}

// Alone says that no other ward is open.
func (w *Ward) Alone() bool { return true }

// Close ends the note of a ward.
func (w *Ward) Close(bool) (survivors int) { return 0 }
