package query

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// maxLine is how much of a line FileMayContain holds in memory, in bytes.
const maxLine = 64 << 20

// FileMayContain reports whether a journal may contain a text. It searches the bytes of the file,
// because parsing takes ten times as long. It returns false if the file cannot be read. It returns
// true for a journal with base64, in which journals store invalid UTF-8, or with a very long line.
func FileMayContain(path, needle string) bool {
	quoted, err := text.JSON(needle)
	if err != nil {
		return true
	}
	match := TextMatcher(strings.Trim(string(quoted), "\"\n"))
	f, err := rootdir.OpenRegular(path, 0)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	in := bufio.NewReader(f)
	var line []byte
	for err == nil {
		if line, err = trajectories.ReadLine(in, line[:0], maxLine); len(line) == 0 && err != nil {
			return !errors.Is(err, io.EOF)
		}
		if bytes.Contains(line, []byte(`"base64"`)) || match(string(line)) {
			return true
		}
	}
	return false
}
