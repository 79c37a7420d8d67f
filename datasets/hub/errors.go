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

// What an Error is about, for errors.Is.
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
	ErrAnswer      = errors.New("unexpected answer of the hub")
	ErrCorrupt     = errors.New("wrong checksum")
	ErrDiskFull    = errors.New("disk full")
	ErrCache       = errors.New("cache cannot be used")
	ErrOffline     = errors.New("offline")
)

// Error is why a dataset could not be had. It is one of the sentinels above,
// and datasets.ErrData: the user can do something about it.
type Error struct {
	// Text is one line, fit for a terminal, without a token or a signed URL.
	Text string
	// Hint is what to do, also one line; may be empty.
	Hint string

	kind error
	err  error // the cause, may be nil
}

// Error implements error; the hint is not in it.
func (e *Error) Error() string { return e.Text }

// Unwrap gives the sentinel, datasets.ErrData, and the cause.
func (e *Error) Unwrap() []error {
	chain := []error{e.kind, datasets.ErrData}
	if e.err != nil {
		chain = append(chain, e.err)
	}
	return chain
}

// diskError says why the cache could not be used: need is how many bytes
// were still to come, 0 where that is not known.
func (h *Hub) diskError(err error, need int64) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		text := "the disk of the cache is full: " + shown(h.dir)
		if need > 0 {
			text = fmt.Sprintf("the disk of the cache is full: %s more are needed in %s", size(need), shown(h.dir))
		}
		return &Error{
			kind: ErrDiskFull, err: err, Text: text,
			Hint: "make room and run it again, which goes on where it stopped; or set XDG_CACHE_HOME to another disk",
		}
	}
	why := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		why = p.Err // the path is named once
	}
	return &Error{
		kind: ErrCache, err: err, Text: fmt.Sprintf("the cache cannot be used: %s: %v", shown(h.dir), why),
		Hint: "make the folder writable, or set XDG_CACHE_HOME to one that is",
	}
}

// maxShown bounds foreign text in messages, in bytes.
const maxShown = 200

// shown makes foreign text fit for one line of a terminal.
func shown(s string) string {
	cut := false
	if len(s) > maxShown {
		s, cut = s[:maxShown], true
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

// size is a number of bytes for people, in the units of disks.
func size(n int64) string {
	return units.CustomSize("%.3g %s", float64(n), 1000, []string{"B", "kB", "MB", "GB", "TB", "PB"})
}
