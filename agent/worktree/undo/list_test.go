package undo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/worktree/undo"
)

func TestListFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := undo.ListFiles(t.Context(), dir); !errors.Is(err, undo.ErrNoRepository) {
		t.Errorf("without a repository: %v", err)
	}
	sh(t, dir, "git init -q . && mkdir sub && touch a b.log sub/c sub/d && echo '*.log' > .gitignore && git add a sub/c && git config core.fsmonitor 'touch ran'")
	for folder, want := range map[string]string{"": ".gitignore a sub/c sub/d", "/sub": "c d"} {
		files, err := undo.ListFiles(t.Context(), dir+folder)
		if got := strings.Join(files, " "); err != nil || got != want {
			t.Errorf("%q: %q, %v", folder, got, err)
		}
	}
}
