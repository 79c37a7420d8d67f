package repository

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A temporary folder is made on the first disk with enough space. The error names all.
func TestMakeTemp(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	free := func(dir string) (int64, error) { return map[string]int64{a: 5, b: 5000}[dir], nil }
	dir, err := makeTemp([]string{a, filepath.Join(a, "missing"), b}, "TAG", 100, free)
	if err != nil || filepath.Dir(dir) != b {
		t.Errorf("%s, %v", dir, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := makeTemp([]string{a, b}, "TAG", 100_000, free); !errors.Is(err, errNoSpace) || !strings.Contains(err.Error(), a+" (5 KiB free), "+b+" (5000 KiB free)") {
		t.Errorf("the error is %v", err)
	}
	if removeTemp([]string{a, b}, "TA"); exists(dir) {
		t.Error("the folder is left")
	}
}
