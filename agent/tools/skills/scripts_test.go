package skills_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// script returns the path of a script of mini's skills.
func script(t *testing.T, skill, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("shipped", skill, "scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// requirePrograms skips the test if a program is missing.
func requirePrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is missing", p)
		}
	}
}

// run runs a program in a directory and returns its output and exit code.
func run(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "TMPDIR="+t.TempDir(), "LC_ALL=C.UTF-8",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// history creates a repository of 40 commits. Commit 27 introduces a bug; commits
// 30 to 32 do not build.
func history(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, code := run(t, dir, "bash", "-c", `set -e
git init -q -b main .
for i in $(seq 40); do
  if [ $i -ge 27 ]; then echo 'echo wrong' > program.sh; else echo 'echo right' > program.sh; fi
  if [ $i -ge 30 ] && [ $i -le 32 ]; then echo 'exit 125 # does not build' > program.sh; fi
  echo $i > number.txt
  git add -A; git commit -qm "change $i"
done
echo mine >> number.txt; echo new > untracked`)
	if code != 0 {
		t.Fatal(out)
	}
	return dir
}

func TestBisect(t *testing.T) {
	requirePrograms(t, "bash", "git")
	bisect := script(t, "bisecting-regressions", "bisect.sh")
	origin := history(t)
	check := []string{"--", "bash", "-c", `out=$(bash program.sh) || exit $?; [ "$out" = right ]`}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"good is looked for", check, 0, `first bad commit\ncommit [0-9a-f]{40}\nauthor a, .*\n\n    change 27\n`},
		{"good is named", append([]string{"--good", "HEAD~39", "--timeout", "30"}, check...), 0, `change 27\n`},
		{"from an older one on", append([]string{"--good", "HEAD~20", "--bad", "HEAD~11"}, check...), 0, `change 27\n`},
		{"bad is good", append([]string{"--bad", "HEAD~30"}, check...), 1, `does not fail at the bad commit \([0-9a-f]+ change 10, exit 0\)`},
		{"good is bad", append([]string{"--good", "HEAD~1"}, check...), 1, `does not pass at [0-9a-f]+ change 39 \(exit 1\)`},
		{"bad cannot be judged", append([]string{"--bad", "HEAD~9"}, check...), 1, `does not fail at the bad commit \(.*, exit 125\)`},
		{"it never worked", []string{"--", "false"}, 1, `does not pass at [0-9a-f]+ change 1 \(exit 1\)`},
		{"it hangs", []string{"--timeout", "0.2", "--good", "HEAD~1", "--", "sleep", "20"}, 1, `does not pass at .* \(exit 124\)`},
		{"no such program", []string{"--", "no-such-program"}, 1, `cannot be run \(exit 127\)`},
		{"no such commit", []string{"--good", "v9", "--", "false"}, 1, `--good is no commit`},
		{"no command", []string{"--good", "HEAD"}, 2, `bisect.sh \[--good REV\]`},
		{"no such flag", []string{"--fast", "--", "true"}, 2, `bisect.sh \[--good REV\]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(origin)); err != nil {
				t.Fatal(err)
			}
			before, _ := run(t, dir, "bash", "-c", "git status --porcelain --branch; cat number.txt untracked; git worktree list; git branch -a; git rev-parse HEAD")
			out, code := run(t, dir, append([]string{"bash", bisect}, tt.args...)...)
			if code != tt.code || !regexp.MustCompile(tt.want).MatchString(out) {
				t.Errorf("exit %d:\n%s", code, out)
			}
			after, _ := run(t, dir, "bash", "-c", "git status --porcelain --branch; cat number.txt untracked; git worktree list; git branch -a; git rev-parse HEAD")
			if after != before {
				t.Errorf("it has left\n%s, where there was\n%s", after, before)
			}
		})
	}
	out, code := run(t, t.TempDir(), "bash", bisect, "--", "true")
	if code != 1 || !strings.Contains(out, "no git repository") {
		t.Errorf("outside of a repository: exit %d: %s", code, out)
	}
}

// TestBisectSkips checks that skipped commits which may be the first bad one are
// listed.
func TestBisectSkips(t *testing.T) {
	requirePrograms(t, "bash", "git")
	dir := t.TempDir()
	out, code := run(t, dir, "bash", "-c", `git init -q . && for i in 0 125 125 1; do echo "exit $i" > p.sh; git add -A; git commit -qm "ends with $i" --allow-empty; done`)
	if code != 0 {
		t.Fatal(out)
	}
	out, code = run(t, dir, "bash", script(t, "bisecting-regressions", "bisect.sh"), "--", "bash", "p.sh")
	if code != 1 || strings.Count(out, "ends with") < 4 || !strings.Contains(out, "cannot be judged") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestMap(t *testing.T) {
	requirePrograms(t, "bash", "git", "awk", "xargs")
	dir := history(t)
	out, code := run(t, dir, "bash", "-c", `mkdir -p src/app tests && printf 'def main(): pass\n' > src/app/main.py && printf 'x\n' > tests/test_app.py &&
printf '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n' > pyproject.toml && echo hi > README.md && echo 1 > 'sp ace.py' && git add -A && git commit -qm more`)
	if code != 0 {
		t.Fatal(out)
	}
	out, code = run(t, dir, "bash", script(t, "large-repositories", "map.sh"))
	for _, want := range []string{"8 files (git, 41 commits", "1\tsrc/app", "3 .py", "README.md", "src/app/main.py", "1\ttests", `pyproject.toml:2:testpaths`, "program.sh"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if out, code = run(t, t.TempDir(), "bash", script(t, "large-repositories", "map.sh")); code != 0 || !strings.Contains(out, "no git repository") {
		t.Errorf("an empty folder: exit %d:\n%s", code, out)
	}
}
