package userfiles_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/internal/userfiles"
)

func add(line string) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) { return append(old, line+"\n"...), nil }
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestUpdateIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "mini", "config.yaml")
	require.NoError(t, userfiles.Update(t.Context(), path, add("a")))
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		info, err := os.Stat(name)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, want %v (%v)", name, info.Mode(), want, err)
		}
	}
	require.NoError(t, os.Chmod(path, 0o644))
	require.NoError(t, userfiles.Update(t.Context(), path, add("b")))
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || read(t, path) != "a\nb\n" {
		t.Errorf("%v, %q, %v", info.Mode(), read(t, path), err)
	}
}

// Concurrent changes are not lost.
func TestConcurrentUpdates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	const n = 12
	var g errgroup.Group
	for i := range n {
		g.Go(func() error { return userfiles.Update(t.Context(), path, add(fmt.Sprint(i))) })
	}
	require.NoError(t, g.Wait())
	assert.Equal(t, n, strings.Count(read(t, path), "\n"), "lines")
}

func TestUpdateFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "mini", "config.yaml"), filepath.Join(dir, "dotfiles", "mini.yaml")
	for _, err := range []error{
		os.Mkdir(filepath.Dir(path), 0o755), os.Mkdir(filepath.Dir(target), 0o755), os.Symlink("../dotfiles/mini.yaml", path),
	} {
		require.NoError(t, err)
	}
	assert.ErrorContains(t, userfiles.Update(t.Context(), path, add("a")), "is a broken link", "a link to nothing")
	require.NoError(t, os.WriteFile(target, []byte("old\n"), 0o644))
	require.NoError(t, userfiles.Update(t.Context(), path, add("a")))
	assert.Equal(t, "old\na\n", read(t, target))
	if link, err := os.Readlink(path); err != nil || link != "../dotfiles/mini.yaml" {
		t.Errorf("the link: %q, %v", link, err)
	}
}

func TestUpdateErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o644))
	before, err := os.Stat(path)
	require.NoError(t, err)
	refused := errors.New("refused")
	if err := userfiles.Update(t.Context(), path, func([]byte) ([]byte, error) { return []byte("x"), refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	assert.NoError(t, userfiles.Update(t.Context(), path, func(old []byte) ([]byte, error) { return old, nil }))
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() || read(t, path) != "old\n" {
		t.Errorf("the file was touched: %v, %v", after.Mode(), err)
	}
	assert.ErrorContains(t, userfiles.Update(t.Context(), filepath.Dir(path), add("a")), "is not a regular file", "a folder")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := userfiles.Update(ctx, path, add("a")); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

func TestVariables(t *testing.T) {
	const text = "# keys\nexport OPENAI_API_KEY=\"old\" # mine\nOTHER='a b'\n\nLAST=x"
	tests := map[string]struct{ text, name, value, want string }{
		"in its place": {text, "OPENAI_API_KEY", "sk-1", "# keys\nOPENAI_API_KEY=sk-1\nOTHER='a b'\n\nLAST=x\n"},
		"a new one":    {text, "X_API_KEY", "sk-1", text + "\nX_API_KEY=sk-1\n"},
		"quoted":       {"", "X_API_KEY", "a$b#c", "X_API_KEY='a$b#c'\n"},
		"set twice":    {"A_API_KEY=1\nB=2\nA_API_KEY=3\n", "A_API_KEY", "4", "A_API_KEY=4\nB=2\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := userfiles.SetVariable("f", []byte(test.text), test.name, test.value)
			if err != nil || string(got) != test.want {
				t.Fatalf("%q, %v, want %q", got, err, test.want)
			}
			values, err := userfiles.ParseEnv("f", got)
			if err != nil || values[test.name] != test.value {
				t.Errorf("read again it is %q, %v", values[test.name], err)
			}
			got, ok, err := userfiles.UnsetVariable("f", got, test.name)
			if err != nil || !ok || strings.Contains(string(got), test.name) {
				t.Errorf("unset: %q, %v, %v", got, ok, err)
			}
		})
	}
}

// An invalid key is rejected, and not repeated in the error.
func TestInvalidVariables(t *testing.T) {
	for name, test := range map[string]struct{ text, value string }{
		"a torn file":     {"A=\"sk-torn\nB", "sk-1"},
		"in another text": {"A=\"x\nX_API_KEY=sk-other\ny\"\n", "sk-1"},
		"a space":         {"", "sk-secret x"},
		"a line end":      {"", "sk-secret\n"},
		"empty":           {"", ""},
		"an escape":       {"", "sk-\x1b[2J"},
		"a quote":         {"", "sk-'"},
		"very long":       {"", strings.Repeat("k", 9000)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := userfiles.SetVariable("f", []byte(test.text), "X_API_KEY", test.value)
			if err == nil || strings.Contains(err.Error(), "sk-") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
