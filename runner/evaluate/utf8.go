package evaluate

import (
	"io"
	"unicode/utf8"

	"github.com/minibench/mini/runner/grade/logs"
)

// utf8Writer writes text to w and replaces invalid UTF-8 with U+FFFD, as the
// official harness does (see logs.ToValidUTF8). A character may be split
// between two writes.
type utf8Writer struct {
	w       io.Writer
	pending []byte // an incomplete character, at most three bytes
}

func (v *utf8Writer) Write(p []byte) (int, error) {
	text := append(v.pending, p...)
	whole := len(text) - incompleteSuffix(text)
	if _, err := v.w.Write(logs.ToValidUTF8(text[:whole])); err != nil {
		return 0, err
	}
	v.pending = append([]byte(nil), text[whole:]...)
	return len(p), nil
}

// Flush writes an incomplete character at the end of the text.
func (v *utf8Writer) Flush() error {
	rest := v.pending
	v.pending = nil
	if len(rest) == 0 {
		return nil
	}
	_, err := v.w.Write(logs.ToValidUTF8(rest))
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
