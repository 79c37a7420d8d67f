package evaluate

import (
	"io"
	"unicode/utf8"

	"github.com/minibench/mini/runner/grade/logs"
)

// validText writes text on to w as it comes, with U+FFFD for what is not valid
// UTF-8, as the official harness stores logs (see logs.Valid). A character may
// arrive in pieces.
type validText struct {
	w    io.Writer
	rest []byte // the beginning of a character, three bytes at most
}

func (v *validText) Write(p []byte) (int, error) {
	text := append(v.rest, p...)
	whole := len(text) - unfinished(text)
	if _, err := v.w.Write(logs.Valid(text[:whole])); err != nil {
		return 0, err
	}
	v.rest = append([]byte(nil), text[whole:]...)
	return len(p), nil
}

// Flush writes what never became a character.
func (v *validText) Flush() error {
	rest := v.rest
	v.rest = nil
	if len(rest) == 0 {
		return nil
	}
	_, err := v.w.Write(logs.Valid(rest))
	return err
}

// unfinished is how many bytes at the end may still become one character.
func unfinished(text []byte) int {
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
