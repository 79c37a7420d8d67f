package grade_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/runner/grade"
)

// The names of models, runs and instances are untrusted.
func TestHostileNames(t *testing.T) {
	good, err := grade.NewLayout("out", "first")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"empty":     {"", "is empty"},
		"here":      {".", "is a path element"},
		"up":        {"..", "is a path element"},
		"backslash": {`a\b`, "contains a slash"},
		"long":      {strings.Repeat("x", 256), "longer than 255 bytes"},
		"not UTF-8": {"a\xffb", "is not valid UTF-8"},
		"NUL":       {"a\x00b", "contains a control character"},
		"escape":    {"a\x1b[2Jb", "contains a control character"},
	} {
		t.Run(name, func(t *testing.T) {
			_, run := grade.NewLayout("out", tt.text)
			_, model := good.Files(tt.text, "a")
			_, instance := good.Files("m", tt.text)
			_, summary := good.SummaryName(tt.text)
			for _, err := range []error{run, model, instance, summary} {
				if !errors.Is(err, grade.ErrInvalidName) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\x1b") {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			}
		})
	}
	if _, err := grade.NewLayout("out", "a/b"); !errors.Is(err, grade.ErrInvalidName) {
		t.Errorf("a run id with a slash: %v", err)
	}
	for _, model := range []string{"../../x", "/etc", "a//b", "./.."} { // valid, because slashes are replaced
		files, err := good.Files(model, "a")
		if err != nil || !strings.HasPrefix(files.Dir, good.Dir()+string(filepath.Separator)) {
			t.Errorf("model %q leads to %s, error %v", model, files.Dir, err)
		}
	}
	if _, err := good.SummaryName(strings.Repeat("x", 250)); !errors.Is(err, grade.ErrInvalidName) {
		t.Errorf("a summary's name of 261 bytes: %v", err)
	}
}
