//go:build full

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestScreens runs a session on real terminals, and compares their screens at each
// question with golden files that a person has reviewed.
func TestScreens(t *testing.T) {
	t.Parallel()
	replies := `
- |
  I look at the file first.

  ` + "```bash\n  cat calc.py; printf '\\033[31mred\\033[0m \\033]0;title\\007\\033[2Jkept\\n'\n  ```" + `
- |
  It subtracts where it should add.

  ` + "```bash\n  sed -i 's/a - b/a + b/' calc.py\n  ```" + `
- |
  What the test left behind goes.

  ` + "```bash\n  rm -rf __pycache__\n  ```" + `
- |
  Done.

  ` + "```bash\n  echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n  ```\n"
	for _, size := range []struct{ columns, rows int }{{80, 24}, {160, 50}} {
		for _, colour := range []string{"", "NO_COLOR=1 "} {
			t.Run(fmt.Sprintf("%dx%d%s", size.columns, size.rows, strings.TrimSuffix(strings.ToLower(colour), "=1 ")), func(t *testing.T) {
				t.Parallel()
				place := newTourPlace(t, t.TempDir(), nil)
				repository(t, place.dir, map[string]string{"calc.py": "def add(a, b):\n    return a - b\n", ".gitignore": "bin\nhome\nreplies.yaml\n"})
				if err := os.WriteFile(filepath.Join(place.dir, "replies.yaml"), []byte(replies), 0o600); err != nil {
					t.Fatal(err)
				}
				term := newTerminal(t, place, size.columns, size.rows)
				term.run(t, "send-keys", "-l", "clear; "+colour+"bin/mini --model-class scripted -c model.replies=replies.yaml -t 'mend add'\n")
				var shown strings.Builder
				for i, step := range []struct{ until, keys string }{
					{`Run this command\? \[Y/n/e\]\n(.*\n)*.* step 1`, ""},
					{`Run this command\? \[Y/n/e/a\]\n(.*\n)*.* step 2`, ""},
					{`Run this command\? \[y/N/e\]\n(.*\n)*.* step 3`, "/d"},
					{`(?s)diff --git.*Run this command\?`, "there is none"},
					{`submitted its work`, ""},
				} {
					term.wait(t, regexp.MustCompile(step.until))
					picture := term.run(t, "capture-pane", "-p")
					fmt.Fprintf(&shown, "== %d\n%s\n", i+1, bottom(normalize(picture, place.dir), 18))
					if colours := term.run(t, "capture-pane", "-p", "-e"); colour != "" && colourSequence.MatchString(colours) {
						t.Errorf("coloured, where NO_COLOR is set:\n%q", colours)
					}
					if title := term.run(t, "display-message", "-p", "#{pane_title}"); title == "title" {
						t.Error("a command has set the title of the terminal")
					}
					if step.keys != "" {
						term.run(t, "send-keys", "-l", step.keys)
					}
					term.run(t, "send-keys", "Enter")
				}
				exit := term.wait(t, prompt)
				fmt.Fprintf(&shown, "== end\n%s\n", bottom(normalize(term.run(t, "capture-pane", "-p", "-J"), place.dir), 8))
				if exit[1] != "0" {
					t.Errorf("ended with %s", exit[1])
				}
				if colour == "" {
					compareGolden(t, filepath.Join("testdata", "screens", fmt.Sprintf("%dx%d.golden", size.columns, size.rows)), shown.String())
				}
			})
		}
	}
}

// bottom returns the last rows of a screen. How far it has scrolled may differ by one
// row.
func bottom(screen string, rows int) string {
	all := strings.Split(screen, "\n")
	return strings.Join(all[max(0, len(all)-rows):], "\n")
}

// colourSequence matches the escape sequence of a foreground or background colour.
var colourSequence = regexp.MustCompile("\x1b\\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")

// normalize replaces the parts of a screen that differ between runs.
func normalize(screen, dir string) string {
	screen = strings.ReplaceAll(screen, dir, "DIR")
	for _, r := range []struct{ pattern, with string }{
		{`\b(\d+m\d\ds|[\d.]+s|\d+ms)\b`, "0s"},
		{`index [0-9a-f]+\.\.[0-9a-f]+`, "index"},
		{`\d{8}-\d{6}\.\d+`, "TIME"},
		{`(?m) +$`, ""},
		{`(?s)mini: the configuration starts .*?\)\n`, ""}, // the test's helper
	} {
		screen = regexp.MustCompile(r.pattern).ReplaceAllString(screen, r.with)
	}
	return screen
}

// compareGolden compares text with a golden file; -update rewrites the file.
func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if updating() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-golden +shown; -update rewrites it):\n%s", path, diff)
	}
}

// repository writes files into dir and makes it a git repository with one commit.
func repository(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", "git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm base")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
