package configs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestValidTools(t *testing.T) {
	l, err := configs.ReadFile(file(t, "mine.yaml", `tools:
  search: [find-page]
  host: [{name: issues, command: [python3, issues.py], usage: issues ID, about: shows one, env: [ISSUES_API_KEY], timeout: 5, max_output: 100}]
  mcp:
    - {name: clock, command: [clock], env: [TZ], tools: [now], timeout: 2.5}
    - {name: books, url: "https://books.example/mcp?shelf=the-long-one-with-books-of-1984", token_env: BOOKS_TOKEN}
`))
	require.NoError(t, err)
	_, err = configs.Merge(builtin(t, "mini"), l)
	assert.NoError(t, err)
}

// TestSkillPaths checks that relative paths are relative to the file that sets them.
func TestSkillPaths(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	path := file(t, "mine.yaml", "skills:\n  use: ['*']\n  paths: [team, /abs, ~/own]\n")
	skillPaths := func(arg string) []string {
		l, err := configs.ReadArg(arg)
		require.NoError(t, err)
		cfg, err := configs.Merge(builtin(t, "swebench"), l)
		require.NoError(t, err)
		return cfg.SkillPaths()
	}
	assert.NoDiff(t, cmp.Diff([]string{filepath.Join(filepath.Dir(path), "team"), "/abs", filepath.Join(home, "own")}, skillPaths(path)))
	assert.NoDiff(t, cmp.Diff([]string{"team"}, skillPaths(`skills.paths=["team"]`)))
}
