package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
	"unicode"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
)

// Error is the error of a fetch. It wraps datasets.ErrData, because the user can correct the
// cause.
type Error struct {
	// Text is one line, safe for a terminal, without tokens and signed URLs.
	Text string
	// Hint tells the user what to do, in one line; may be empty.
	Hint string

	retry bool          // the request may succeed if it is repeated
	after time.Duration // delay that the server asked for; 0 if none
}

// Error implements error; the text does not include the hint.
func (e *Error) Error() string { return e.Text }

// Unwrap returns datasets.ErrData.
func (e *Error) Unwrap() error { return datasets.ErrData }

// diskError converts an error of the cache. need is the size of the file; 0
// if unknown.
func (h *Hub) diskError(err error, need int64) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		message := "the disk of the cache is full: " + printable(h.dir)
		if need > 0 {
			message = fmt.Sprintf("the disk of the cache is full: %s are needed in %s", unit.Size(need), printable(h.dir))
		}
		return &Error{
			Text: message,
			Hint: "free space and run it again, or set HF_HUB_CACHE to a directory on another disk",
		}
	}
	reason := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		reason = p.Err // the text contains the path already
	}
	return &Error{
		Text: fmt.Sprintf("the cache cannot be used: %s: %v", printable(h.dir), reason),
		Hint: "make the directory writable, or set HF_HUB_CACHE to another",
	}
}

// maxPrintable limits untrusted text in messages, in bytes.
const maxPrintable = 200

// printable makes untrusted text safe for one line of a terminal.
func printable(s string) string { return text.Printable(text.Clip(s, maxPrintable)) }

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
