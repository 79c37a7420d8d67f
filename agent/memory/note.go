package memory

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of notes. Bytes are those of UTF-8.
const (
	MaxNote     = 4 << 10   // of one text, in bytes
	MaxNotes    = 500       // in a file
	MaxText     = 256 << 10 // of all texts of a file, in bytes
	maxFile     = 2 << 20   // JSON needs up to six bytes for one
	maxID       = 1 << 31
	maxCategory = 32 // characters
)

// General is the category of notes that were given none.
const General = "general"

// Note is one thing to remember.
type Note struct {
	// ID stays the same, and is never given again in the same file.
	ID       int       `json:"id"`
	Category string    `json:"category"`
	Text     string    `json:"text"`
	Time     time.Time `json:"time"`
}

// ErrMistake is what is wrong with what was asked for; the text of an error that
// wraps it says what.
var ErrMistake = errors.New("mistake")

type mistake struct{ text string }

func mistakef(format string, args ...any) error { return &mistake{fmt.Sprintf(format, args...)} }

func (m *mistake) Error() string { return m.text }

// Is makes it an ErrMistake.
func (m *mistake) Is(target error) bool { return target == ErrMistake }

// isWord says whether a category may be called so. No pattern: one that counts
// signs of all scripts takes milliseconds to be made, at every start of mini.
func isWord(name string) bool {
	for i, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && (i == 0 || !strings.ContainsRune("_.-", r)) {
			return false
		}
	}
	return name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxCategory
}

// category is a category as it is kept.
func category(name string) (string, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return General, nil
	}
	if !isWord(name) {
		return "", mistakef("%.80q is no category: that is one word of letters and digits, also with - _ and . in it, at most %d characters", name, maxCategory)
	}
	return name, nil
}

// text is a text as it is kept.
func text(s string) (string, error) {
	s = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\uFFFD"))
	switch {
	case s == "":
		return "", mistakef("the note is empty")
	case len(s) > MaxNote:
		return "", mistakef("the note has %d bytes, and at most %d can be kept; say it shorter, or keep it in a file and note where that is", len(s), MaxNote)
	}
	return s, nil
}

// check says what is wrong with a note that stands in a file.
func (n Note) check() error {
	switch {
	case n.ID < 1 || n.ID > maxID:
		return fmt.Errorf("%d is no id of a note", n.ID)
	case !isWord(n.Category):
		return fmt.Errorf("note %d has no category", n.ID)
	case strings.TrimSpace(n.Text) == "" || len(n.Text) > MaxNote || !utf8.ValidString(n.Text):
		return fmt.Errorf("note %d has no text of at most %d bytes", n.ID, MaxNote)
	}
	return nil
}
