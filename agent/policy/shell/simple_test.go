package shell_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/policy/shell"
)

// Bash passes the words that SimpleCommand returns, and does nothing else. The texts are random
// combinations of what means something to a shell.
func TestSimpleCommandIsWhatBashRuns(t *testing.T) {
	pieces := strings.Split("a|b|-x|=|:|/|.|,|+|%|@|^|~|HEAD~1| | |  |\t|'|\"|''|\"\"|\\|`|$|$a|${a}|$(a)|$((1))|(|)|{|}|{a,b}|{1..3}|[|]|[ab]|*|?|!|!!|#| #|&|&&|;|;;|<|>|2>&1|>a|<<<a|\\n|\n|\r|\x00|é|\u00a0|\u200b|if|then|fi|time|coproc|[[|]]|function|a=b|a+=b|a[0]=b", "|")
	pieces = append(pieces, "|", "||", "|&")
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "-x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var script strings.Builder
	var texts []string
	var want [][]string
	for range 200_000 {
		text := "a "
		for range 1 + random.IntN(6) {
			text += pieces[random.IntN(len(pieces))]
		}
		if words, ok := shell.SimpleCommand(text); ok && !slices.Contains(texts, text) && len(texts) < 3000 {
			texts, want = append(texts, text), append(want, words)
			script.WriteString("builtin printf '%s\\0' " + strings.Trim(text, " \t\n") + "\nbuiltin printf '\\n\\0'\n")
		}
	}
	if len(texts) < 1000 {
		t.Fatalf("only %d texts", len(texts))
	}
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile", "-s")
	cmd.Dir, cmd.Env, cmd.Stdin = dir, []string{"PATH=/nonexistent", "HOME=/home/user", "a=value"}, strings.NewReader(script.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	results := strings.Split(string(out), "\n\x00")
	if len(results) != len(texts)+1 {
		t.Fatalf("%d results of %d texts", len(results)-1, len(texts))
	}
	for i, text := range texts {
		if got := strings.Split(strings.TrimSuffix(results[i], "\x00"), "\x00"); !slices.Equal(got, want[i]) {
			t.Errorf("%q: bash has %q, not %q", text, got, want[i])
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}
