package saved_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/policy/saved"
)

func TestStore(t *testing.T) {
	state, folder := filepath.Join(t.TempDir(), "allowed"), t.TempDir()
	s, err := saved.Open(state, folder)
	if err != nil {
		t.Fatal(err)
	}
	check := func(want ...string) {
		t.Helper()
		again, err := saved.Open(state, folder)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := again.Commands(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	check()
	for _, command := range []string{"go test", "pytest", "go test"} {
		if err := s.Add(command); err != nil {
			t.Fatal(err)
		}
	}
	check("go test", "pytest")
	if _, err := s.Remove(3); err == nil || !strings.Contains(err.Error(), "no rule 3") {
		t.Error(err)
	}
	if command, err := s.Remove(1); err != nil || command != "go test" {
		t.Error(command, err)
	}
	check("pytest")
	if other, err := saved.Open(state, t.TempDir()); err != nil {
		t.Fatal(err)
	} else if got, err := other.Commands(); err != nil || len(got) > 0 {
		t.Errorf("another folder has %q, %v", got, err)
	}
	for _, around := range []string{filepath.Dir(state), "/"} {
		if _, err := saved.Open(filepath.Join(state, "not", "yet"), around); !errors.Is(err, saved.ErrInside) {
			t.Errorf("%s: %v", around, err)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	files, err := filepath.Glob(filepath.Join(state, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for _, text := range []string{"{", `{"folder": "/other", "allow": ["rm"]}`} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Commands(); err == nil || len(got) > 0 {
			t.Errorf("%s: %q, %v", text, got, err)
		}
		if s.Add("ls") == nil {
			t.Errorf("%s: it is overwritten", text)
		}
	}
}
