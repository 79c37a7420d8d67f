package projectdocs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/cmd/mini/internal/task/projectdocs"
)

// tree writes files below a temporary folder and returns it. A text "-> TARGET" is a symbolic
// link, and a name that ends in a slash a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		target, isLink := strings.CutPrefix(text, "-> ")
		var err error
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case isLink:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	lines := strings.Repeat(strings.Repeat("x", 99)+"\n", 400) // 40,000 bytes
	for _, tt := range []struct {
		name  string
		files map[string]string
		dir   string
		want  []string // path, size and beginning
		err   string
	}{
		{
			name:  "user, root and folder, in this order",
			files: map[string]string{"config/AGENTS.md": "mine", "repo/.git/": "", "repo/AGENTS.md": "root", "repo/a/b/AGENTS.md": "near", "AGENTS.md": "outside"},
			dir:   "repo/a/b",
			want:  []string{"DIR/config/AGENTS.md 4 mine", "../../AGENTS.md 4 root", "AGENTS.md 4 near"},
		},
		{
			name:  "without a repository, the folder only",
			files: map[string]string{"AGENTS.md": "outside", "work/AGENTS.md": "here"},
			dir:   "work",
			want:  []string{"AGENTS.md 4 here"},
		},
		{
			name:  "a worktree has a file .git",
			files: map[string]string{"repo/.git": "gitdir: x", "repo/CLAUDE.md": "c", "repo/a/": ""},
			dir:   "repo/a",
			want:  []string{"../CLAUDE.md 1 c"},
		},
		{
			name:  "CLAUDE.md where there is no AGENTS.md",
			files: map[string]string{"repo/.git/": "", "repo/AGENTS.md": "a", "repo/CLAUDE.md": "-> AGENTS.md", "repo/a/CLAUDE.md": "c"},
			dir:   "repo/a",
			want:  []string{"../AGENTS.md 1 a", "CLAUDE.md 1 c"},
		},
		{
			name:  "a link out of the repository",
			files: map[string]string{"secret": "s", "repo/.git/": "", "repo/AGENTS.md": "-> ../secret"},
			dir:   "repo",
			err:   "AGENTS.md",
		},
		{
			name:  "a link to a file with keys",
			files: map[string]string{"repo/.git/config": "token", "repo/.env": "KEY=1", "repo/AGENTS.md": "-> .git/config", "repo/a/AGENTS.md": "-> ../.env"},
			dir:   "repo/a",
			err:   "not followed",
		},
		{
			name:  "a link to the instructions of another folder, and one to nothing",
			files: map[string]string{"repo/.git/": "", "repo/doc/AGENTS.md": "d", "repo/AGENTS.md": "-> doc/AGENTS.md", "repo/a/AGENTS.md": "-> gone"},
			dir:   "repo/a",
			want:  []string{"../AGENTS.md 1 d"},
		},
		{
			name:  "the user's own file may be a link",
			files: map[string]string{"dotfiles/claude": "mine", "config/AGENTS.md": "-> ../dotfiles/claude", "repo/": ""},
			dir:   "repo",
			want:  []string{"DIR/config/AGENTS.md 4 mine"},
		},
		{
			name:  "an AGENTS.md that cannot be read does not hide CLAUDE.md",
			files: map[string]string{"repo/.git/": "", "repo/AGENTS.md/": "", "repo/CLAUDE.md": "c"},
			dir:   "repo",
			want:  []string{"CLAUDE.md 1 c"},
			err:   "not a regular file",
		},
		{
			name:  "a folder of that name, and an empty file",
			files: map[string]string{"repo/.git/": "", "repo/AGENTS.md/": "", "repo/a/AGENTS.md": "\n"},
			dir:   "repo/a",
			err:   "not a regular file",
		},
		{
			name:  "a long file is cut after a line, and of all the first ones",
			files: map[string]string{"config/AGENTS.md": lines, "repo/.git/": "", "repo/AGENTS.md": lines, "repo/a/AGENTS.md": lines},
			dir:   "repo/a",
			want:  []string{"DIR/config/AGENTS.md 100 xx (cut)", "../AGENTS.md 32699 xx (cut)", "AGENTS.md 32699 xx (cut)"},
		},
		{
			name:  "tabs stay; line ends and invalid characters do not",
			files: map[string]string{"AGENTS.md": "a:\n\tb\xff\r\nd"},
			dir:   ".",
			want:  []string{"AGENTS.md 10 a:\n\tb\ufffd\nd"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, tt.files)
			files, err := projectdocs.Read(filepath.Join(dir, "config"), filepath.Join(dir, tt.dir))
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("err = %v, want %q", err, tt.err)
			}
			var got []string
			for _, f := range files {
				line := fmt.Sprintf("%s %d %.10s", strings.ReplaceAll(f.Path, dir, "DIR"), f.Bytes, f.Text)
				if f.IsCut {
					line = fmt.Sprintf("%s %d %.2s (cut)", strings.ReplaceAll(f.Path, dir, "DIR"), f.Bytes, f.Text)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrompt(t *testing.T) {
	if got := projectdocs.Prompt(nil); got != "" {
		t.Errorf("without files: %q", got)
	}
	got := projectdocs.Prompt([]projectdocs.File{{Path: "a\"b/AGENTS.md", Text: "tabs"}, {Path: "AGENTS.md", Text: "spaces", IsCut: true}})
	want := `The user and the project have these instructions for you. Of two that contradict
each other, the later one counts; the task counts more than both.

<instructions file="a\"b/AGENTS.md">
tabs
</instructions>

<instructions file="AGENTS.md">
spaces
(The file goes on; read it if you need the rest.)
</instructions>
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
