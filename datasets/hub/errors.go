package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"unicode"

	"github.com/docker/go-units"

	"github.com/minibench/mini/datasets"
)

// The kinds of an Error, for errors.Is.
var (
	ErrConfig      = errors.New("configuration of the hub")
	ErrRef         = errors.New("not a reference to a dataset")
	ErrNotFound    = errors.New("no such dataset, or no access")
	ErrGated       = errors.New("terms of the dataset are not accepted")
	ErrRevision    = errors.New("no such revision")
	ErrSplit       = errors.New("no such split")
	ErrToken       = errors.New("token not accepted")
	ErrUnreachable = errors.New("hub unreachable")
	ErrRateLimited = errors.New("rate limited")
	ErrResponse    = errors.New("unexpected response of the hub")
	ErrCorrupt     = errors.New("wrong checksum")
	ErrDiskFull    = errors.New("disk full")
	ErrCache       = errors.New("cache cannot be used")
	ErrOffline     = errors.New("offline")
)

// Error is the error of a fetch. It wraps one of the errors above and datasets.ErrData,
// because the user can correct the cause.
type Error struct {
	// Text is one line, safe for a terminal, without tokens and signed URLs.
	Text string
	// Hint tells the user what to do, in one line; may be empty.
	Hint string

	kind error
	err  error // cause; may be nil
}

// Error implements error; the text does not include the hint.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the kind of the error, datasets.ErrData and the cause.
func (e *Error) Unwrap() []error {
	chain := []error{e.kind, datasets.ErrData}
	if e.err != nil {
		chain = append(chain, e.err)
	}
	return chain
}

// diskError converts an error of the cache. need is the number of bytes still to write; 0
// if unknown.
func (h *Hub) diskError(err error, need int64) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		text := "the disk of the cache is full: " + printable(h.dir)
		if need > 0 {
			text = fmt.Sprintf("the disk of the cache is full: %s more are needed in %s", size(need), printable(h.dir))
		}
		return &Error{
			kind: ErrDiskFull, err: err, Text: text,
			Hint: "free space and run it again, which resumes the download; or set XDG_CACHE_HOME to another disk",
		}
	}
	reason := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		reason = p.Err // the text contains the path already
	}
	return &Error{
		kind: ErrCache, err: err, Text: fmt.Sprintf("the cache cannot be used: %s: %v", printable(h.dir), reason),
		Hint: "make the directory writable, or set XDG_CACHE_HOME to another",
	}
}

// maxPrintable limits untrusted text in messages, in bytes.
const maxPrintable = 200

// printable makes untrusted text safe for one line of a terminal.
func printable(s string) string {
	cut := false
	if len(s) > maxPrintable {
		s, cut = s[:maxPrintable], true
	}
	s = strings.Map(func(r rune) rune {
		if unprintable(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	if cut {
		s += "..."
	}
	return s
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// size formats a number of bytes in decimal units.
func size(n int64) string {
	return units.CustomSize("%.3g %s", float64(n), 1000, []string{"B", "kB", "MB", "GB", "TB", "PB"})
}
