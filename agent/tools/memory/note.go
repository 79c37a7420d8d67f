package memory

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of notes. Byte counts are of UTF-8.
const (
	MaxNoteBytes  = 4 << 10   // bytes of one text
	MaxNotes      = 500       // notes in a file
	MaxTotalBytes = 256 << 10 // bytes of all texts in a file
	maxFile       = 2 << 20   // bytes; JSON may encode one byte as six
	maxCategory   = 32        // characters
)

// DefaultCategory is the category of notes that are added without one.
const DefaultCategory = "general"

// Note is a text to remember.
type Note struct {
	// ID is unique in the file and never reused.
	ID       int       `json:"id"`
	Category string    `json:"category"`
	Text     string    `json:"text"`
	Time     time.Time `json:"time"`
}

// ErrInvalid is the target of errors.Is for errors about invalid requests.
var ErrInvalid = errors.New("mistake")

// invalidError is an error with its own text that matches ErrInvalid.
type invalidError struct{ text string }

func invalidf(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

func (e *invalidError) Error() string { return e.text }

// Is reports whether target is ErrInvalid.
func (e *invalidError) Is(target error) bool { return target == ErrInvalid }

// isCategory reports whether a name is a valid category. It does not use a
// regular expression, because compiling one with Unicode classes takes
// milliseconds at every start.
func isCategory(name string) bool {
	for i, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && (i == 0 || !strings.ContainsRune("_.-", r)) {
			return false
		}
	}
	return name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxCategory
}

// normalizeCategory returns the stored form of a category. The error for an
// invalid category is an ErrInvalid.
func normalizeCategory(name string) (string, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return DefaultCategory, nil
	}
	if !isCategory(name) {
		return "", invalidf("%.80q is no category: that is one word of letters and digits, also with - _ and . in it, at most %d characters", name, maxCategory)
	}
	return name, nil
}

// normalizeText returns the stored form of a text. The error for an invalid
// text is an ErrInvalid.
func normalizeText(s string) (string, error) {
	s = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\uFFFD"))
	switch {
	case s == "":
		return "", invalidf("the note is empty")
	case len(s) > MaxNoteBytes:
		return "", invalidf("the note has %d bytes, and at most %d can be kept; say it shorter, or keep it in a file and note where that is", len(s), MaxNoteBytes)
	}
	return s, nil
}
