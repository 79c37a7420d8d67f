package query

import (
	"os"
	"strings"

	"github.com/minibench/mini/internal/text"
)

// FileMayContain reports whether a journal may contain a text. It searches the bytes of the file,
// because parsing takes ten times as long. It returns false if the file cannot be read. It returns
// true for a journal with base64, in which journals store invalid UTF-8.
func FileMayContain(path, needle string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a pipe would block
		return false
	}
	data, err := os.ReadFile(path) //nolint:gosec // G304: the file that is inspected
	if err != nil {
		return false
	}
	quoted, err := text.JSON(needle)
	if err != nil {
		return true
	}
	content := string(data)
	return strings.Contains(content, `"base64"`) || TextMatcher(strings.Trim(string(quoted), "\"\n"))(content)
}
