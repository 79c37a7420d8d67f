package helper

import (
	"encoding/binary"
	"fmt"
)

// Done is the helper's report of a Put or Get that ended.
type Done struct {
	// Failure says in a sentence what went wrong; empty when all went well.
	Failure string `json:"failure,omitempty"`
	// Missing says that there is no such path.
	Missing bool `json:"missing,omitempty"`
	// Cancelled says that the client's Cancel ended it.
	Cancelled bool `json:"cancelled,omitempty"`
}

// EncodeMore makes the body of a More frame: how many chunks were used up
// (uint32 big endian).
func EncodeMore(chunks int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(chunks)) }

// DecodeMore is the inverse of EncodeMore. The count is from 1 to Window.
func DecodeMore(body []byte) (int, error) {
	if len(body) != 4 {
		return 0, fmt.Errorf("%w: a body of %d bytes for a count of chunks", ErrFrame, len(body))
	}
	n := binary.BigEndian.Uint32(body)
	if n < 1 || n > Window {
		return 0, fmt.Errorf("%w: %d chunks used up, %d may be on their way", ErrFrame, n, Window)
	}
	return int(n), nil
}

// Credit counts the chunks that may still be sent: a token for each.
type Credit chan struct{}

// NewCredit is a whole Window.
func NewCredit() Credit {
	c := make(Credit, Window)
	for range Window {
		c <- struct{}{}
	}
	return c
}

// Grant takes a More frame's body: the other side has used chunks up. More
// than were sent is against the rules.
func (c Credit) Grant(body []byte) error {
	n, err := DecodeMore(body)
	if err != nil {
		return err
	}
	for range n {
		select {
		case c <- struct{}{}:
		default:
			return fmt.Errorf("%w: more chunks used up than were sent", ErrFrame)
		}
	}
	return nil
}

// Usage counts chunks that were used up, and says when to tell the sender.
type Usage int

// Another notes a chunk. The body is that of the More frame that is due, or nil.
func (u *Usage) Another() []byte {
	*u++
	if *u < Window/2 {
		return nil
	}
	n := int(*u)
	*u = 0
	return EncodeMore(n)
}
