package datasets_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
)

// White space compresses well, so a small file may contain any amount of it.
func TestWhiteSpace(t *testing.T) {
	few, many := strings.Repeat(" \r\n\t", 50_000), strings.Repeat(" \r\n\t", 300_000)
	for name, tt := range map[string]struct {
		text, want string
	}{
		"before the first row":     {"\ufeff" + few + line("a") + line("b"), ""},
		"before a list":            {few + "[" + line("a") + "," + line("b") + "]" + few, ""},
		"between and after":        {line("a") + few + line("b") + few, ""},
		"too much before":          {many + line("a"), "more than 1 MB of white space"},
		"too much before a list":   {many + "[" + line("a") + "]", "more than 1 MB of white space"},
		"too much between":         {line("a") + many + line("b"), ": more than 1 MB of white space"},
		"nothing else":             {many, "more than 1 MB of white space"},
		"nothing else, but little": {few, "no rows"},
	} {
		for _, packed := range []bool{false, true} {
			text := tt.text
			if packed {
				text = zipped(t, text)
			}
			set, err := read(t, "x", text)
			switch {
			case tt.want == "" && (err != nil || set.Rows != 2):
				t.Errorf("%s, packed %t: %d rows, %v", name, packed, set.Rows, err)
			case tt.want != "" && (!errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%s, packed %t: got %v, want %q", name, packed, err, tt.want)
			}
		}
	}
}
