package helper

import (
	"encoding/binary"
	"fmt"
)

// Done is the helper's report of a finished Put or Get.
type Done struct {
	// Failure is an error message; empty after success.
	Failure string `json:"failure,omitempty"`
	// Missing reports that the path does not exist.
	Missing bool `json:"missing,omitempty"`
	// Cancelled reports that the client's Cancel ended the transfer.
	Cancelled bool `json:"cancelled,omitempty"`
}

// EncodeWindowUpdate returns the body of a WindowUpdate frame: the number of processed
// chunks (big-endian uint32).
func EncodeWindowUpdate(chunks int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(chunks)) }

// DecodeWindowUpdate is the inverse of EncodeWindowUpdate. The number must be from 1
// to Window.
func DecodeWindowUpdate(body []byte) (int, error) {
	if len(body) != 4 {
		return 0, fmt.Errorf("%w: window update of %d bytes", ErrFrame, len(body))
	}
	n := binary.BigEndian.Uint32(body)
	if n < 1 || n > Window {
		return 0, fmt.Errorf("%w: window update for %d chunks, allowed 1 to %d", ErrFrame, n, Window)
	}
	return int(n), nil
}

// Credit counts the chunks that may be sent: it holds a token for each.
type Credit chan struct{}

// NewCredit returns a Credit for n chunks.
func NewCredit(n int) Credit {
	c := make(Credit, n)
	for range n {
		c <- struct{}{}
	}
	return c
}

// Grant adds the chunks of a WindowUpdate frame with this body. It returns an error if
// the body is invalid or acknowledges more chunks than were sent.
func (c Credit) Grant(body []byte) error {
	n, err := DecodeWindowUpdate(body)
	if err != nil {
		return err
	}
	for range n {
		select {
		case c <- struct{}{}:
		default:
			return fmt.Errorf("%w: window update for more chunks than were sent", ErrFrame)
		}
	}
	return nil
}

// ReceivedChunks counts the chunks processed since the last WindowUpdate frame, and
// decides when to send a WindowUpdate frame.
type ReceivedChunks int

// Add counts one chunk. It returns the body of the WindowUpdate frame that is due, or
// nil if none is.
func (u *ReceivedChunks) Add() []byte {
	*u++
	if *u < Window/2 {
		return nil
	}
	n := int(*u)
	*u = 0
	return EncodeWindowUpdate(n)
}
