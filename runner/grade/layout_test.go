package grade_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/runner/grade"
)

func TestLayout(t *testing.T) {
	run, err := grade.NewRun("out", "first")
	if err != nil {
		t.Fatal(err)
	}
	files, err := run.Files("org/model", "a__b-1")
	if err != nil {
		t.Fatal(err)
	}
	dir := "out/logs/run_evaluation/first/org__model/a__b-1"
	for got, want := range map[string]string{
		files.Dir:        dir,
		files.Patch:      dir + "/patch.diff",
		files.Script:     dir + "/eval.sh",
		files.Log:        dir + "/run_instance.log",
		files.TestOutput: dir + "/test_output.txt",
		files.Report:     dir + "/report.json",
		run.Info():       "out/logs/run_evaluation/first/run.json",
	} {
		if filepath.ToSlash(got) != want {
			t.Errorf("path %s, want %s", got, want)
		}
	}
	if name, err := run.SummaryName("org/model"); err != nil || name != "org__model.first.json" {
		t.Errorf("summary %s, error %v", name, err)
	}
}

// Models, runs and instances are names that strangers gave.
func TestHostileNames(t *testing.T) {
	good, err := grade.NewRun("out", "first")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"empty":     {"", "is empty"},
		"here":      {".", "would lead elsewhere"},
		"up":        {"..", "would lead elsewhere"},
		"backslash": {`a\b`, "has a slash"},
		"long":      {strings.Repeat("x", 256), "longer than 255 bytes"},
		"not UTF-8": {"a\xffb", "is not UTF-8"},
		"NUL":       {"a\x00b", "cannot be printed"},
		"escape":    {"a\x1b[2Jb", "cannot be printed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, run := grade.NewRun("out", tt.text)
			_, model := good.Files(tt.text, "a")
			_, instance := good.Files("m", tt.text)
			_, summary := good.SummaryName(tt.text)
			for _, err := range []error{run, model, instance, summary} {
				if !errors.Is(err, grade.ErrName) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\x1b") {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			}
		})
	}
	if _, err := grade.NewRun("out", "a/b"); !errors.Is(err, grade.ErrName) {
		t.Errorf("a run id with a slash: %v", err)
	}
	for _, model := range []string{"../../x", "/etc", "a//b", "./.."} { // slashes are no longer any
		files, err := good.Files(model, "a")
		if err != nil || !strings.HasPrefix(files.Dir, good.Dir()+string(filepath.Separator)) {
			t.Errorf("model %q leads to %s, error %v", model, files.Dir, err)
		}
	}
	if _, err := good.SummaryName(strings.Repeat("x", 250)); !errors.Is(err, grade.ErrName) {
		t.Errorf("a summary's name of 261 bytes: %v", err)
	}
}
