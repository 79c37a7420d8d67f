package evaluate

import (
	"io"
	"unicode/utf8"

	"github.com/minibench/mini/runner/grade/logs"
)

// utf8Writer writes text to w and replaces invalid UTF-8 with U+FFFD, as the
// official harness does (see logs.ToValidUTF8). It accepts characters that are
// split between writes.
type utf8Writer struct {
	w       io.Writer
	pending []byte // start of an incomplete character, at most three bytes
}

func (u *utf8Writer) Write(p []byte) (int, error) {
	text := append(u.pending, p...)
	complete := len(text) - incompleteSuffix(text)
	if _, err := u.w.Write(logs.ToValidUTF8(text[:complete])); err != nil {
		return 0, err
	}
	u.pending = append([]byte(nil), text[complete:]...)
	return len(p), nil
}

// Flush writes U+FFFD if the text ends with an incomplete character.
func (u *utf8Writer) Flush() error {
	rest := u.pending
	u.pending = nil
	if len(rest) == 0 {
		return nil
	}
	_, err := u.w.Write(logs.ToValidUTF8(rest))
	return err
}

// incompleteSuffix returns the length of an incomplete character at the end of
// text.
func incompleteSuffix(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}
