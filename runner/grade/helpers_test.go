package grade_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/runner/grade/logs"
)

// readText reads a log as the harness does. The error is logs.ErrNotUTF8.
func readText(t testing.TB, path string) (string, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		corpustest.SkipOrFail(t, "the corpus lacks %s", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return logs.Decode(data)
}

// indented returns JSON as Python writes it: in ASCII, indented by four spaces.
func indented(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "    "); err != nil {
		t.Fatal(err)
	}
	var s strings.Builder
	for _, r := range b.String() {
		switch {
		case r < 0x7f: // 0x7f is a control character
			s.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&s, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&s, `\u%04x`, r)
		}
	}
	return s.String()
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
