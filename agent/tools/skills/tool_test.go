package skills_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/skills"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// newBundle returns a bundle of a skill with files and one without.
func newBundle(t *testing.T) (bundle *skills.Bundle, dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, dir+"/with-files/SKILL.md", "---\nname: with-files\ndescription: has files\nversion: 3\nallowed-tools: Bash Read\n---\n# Do\n\nbash scripts/hello.sh\n")
	writeFile(t, dir+"/with-files/scripts/hello.sh", "#!/bin/sh\necho hello from \"$(dirname \"$0\")\"\n")
	writeFile(t, dir+"/with-files/references/deep/note.md", "a note\n")
	writeFile(t, dir+"/with-files/assets/blob", "\x00\xff")
	writeFile(t, dir+"/without/SKILL.md", skillText("without"))
	use, err := skills.Load(skills.DirSource(dir)).Select([]string{skills.All})
	require.NoError(t, err)
	if bundle, err = skills.NewBundle(use); err != nil {
		t.Fatal(err)
	}
	return bundle, dir
}

func call(t *testing.T, tool tools.Tool, args ...string) tools.Result {
	t.Helper()
	res, err := tool.Call(t.Context(), tools.Call{Args: args})
	require.NoError(t, err)
	return res
}

func TestTool(t *testing.T) {
	bundle, _ := newBundle(t)
	tool := bundle.Tool(skills.Options{})
	assert.Equal(t, "with-files: has files\nwithout: about without\n\nmini-tool skill NAME prints the text of one.\n", call(t, tool).Output)
	assert.Equal(t, "skill without\n\ntext of without\n", call(t, tool, "without").Output)
	for want, args := range map[string][]string{
		`there is no skill "with-file"; did you mean with-files?`: {"with-file"},
		`there is no skill "\x1b[2J"; mini-tool skill lists them`: {"\x1b[2J"},
		`there is no skill "../without"; did you mean without?`:   {"../without"},
		"it takes one name, not 2 arguments":                      {"without", "x"},
	} {
		_, err := tool.Call(t.Context(), tools.Call{Args: args})
		if _, usage := errors.AsType[*tools.UsageError](err); !usage || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if a := bundle.Capabilities(); len(a) != 2 || a[0].Name != "with-files" || a[0].Usage != "skill with-files" || a[0].Description != "has files" {
		t.Errorf("%+v", a)
	}
	none, err := skills.NewBundle(nil)
	require.NoError(t, err)
	assert.Equal(t, "there are no skills\n", call(t, none.Tool(skills.Options{})).Output)
}

// sandboxes returns functions that start the sandboxes to test.
func sandboxes(t *testing.T, dir string) map[string]func(t *testing.T) env.Environment {
	t.Helper()
	return map[string]func(t *testing.T) env.Environment{
		"local": func(t *testing.T) env.Environment {
			sandbox, err := local.New(t.Context(), local.Config{Dir: dir})
			require.NoError(t, err)
			return sandbox
		},
		"docker":      func(t *testing.T) env.Environment { return container(t, "/tmp") },
		"docker in /": func(t *testing.T) env.Environment { return container(t, "/") },
	}
}

func container(t *testing.T, dir string) env.Environment {
	t.Helper()
	return newContainer(t, docker.Config{Dir: dir})
}

// TestFilesInTheSandbox checks that the files are at the printed path, are
// read-only copies, and are not part of the patch.
func TestFilesInTheSandbox(t *testing.T) {
	work := t.TempDir()
	for name, open := range sandboxes(t, work) {
		t.Run(name, func(t *testing.T) {
			sandbox := open(t)
			t.Cleanup(func() { assert.NoError(t, sandbox.Close(context.WithoutCancel(t.Context()))) })
			bundle, origin := newBundle(t)
			o := skills.Options{}
			if name == "local" {
				o.Dir = func() (string, error) { return work + "/files of skills", nil } // callers should avoid the repository
			}
			tool := bundle.Tool(o)
			require.NoError(t, tool.Prepare(t.Context(), sandbox))
			res := call(t, tool, "with-files")
			at := skills.DefaultDir
			if name == "local" {
				at = work + "/files of skills"
			}
			want := "skill with-files 3\nIts files are in " + at + "/with-files (read-only); paths in the text are relative to that folder:\n" +
				"  assets/blob (2 bytes)\n  references/deep/note.md (7 bytes)\n  scripts/hello.sh (44 bytes, executable)\n" +
				"It is meant to be followed with these tools alone: Bash, Read\n\n# Do\n\nbash scripts/hello.sh\n"
			assert.Equal(t, want, res.Output)
			for script, want := range map[string]string{
				"cd '" + at + "/with-files' && stat -c '%a %n' scripts scripts/hello.sh references/deep/note.md && scripts/hello.sh":            "555 scripts\n555 scripts/hello.sh\n444 references/deep/note.md\nhello from scripts\n",
				"od -An -tx1 '" + at + "/with-files/assets/blob'":                                                                               " 00 ff\n",
				"git init -q . && git status --porcelain | grep -i skill; git add -A 2>/dev/null; git ls-files | grep -c hello.sh; rm -rf .git": "0\n",
			} {
				if name == "docker in /" && strings.HasPrefix(script, "git") { // git would add all files of the image
					script = "git init -q . && git status --porcelain -uall tmp; rm -rf .git"
					want = ""
				}
				got, err := sandbox.Execute(t.Context(), env.Command{Script: script})
				if err != nil || string(got.Output) != want {
					t.Errorf("%s: %q, %v", script, got.Output, err)
				}
			}
			if got, err := sandbox.Execute(t.Context(), env.Command{
				Script: "cd '" + at + "/with-files' && chmod -R u+w . && echo spoilt | tee scripts/hello.sh SKILL.md >/dev/null",
			}); err != nil || got.ExitCode != 0 {
				t.Errorf("%s, %v", got.Output, err)
			}
			if own, err := os.ReadFile(filepath.Join(origin, "with-files/scripts/hello.sh")); err != nil || strings.Contains(string(own), "spoilt") {
				t.Errorf("the user's own file: %q, %v", own, err)
			}
			if err := tool.Prepare(t.Context(), sandbox); err != nil { // as for a child
				t.Error(err)
			}
			if other := bundle.Tool(o); other.Prepare(t.Context(), sandbox) != nil || call(t, other, "with-files").Output != want {
				t.Error("once more, over what is there")
			}
		})
	}
}

// TestFilesAreReadOnly checks that users other than root cannot write the files.
func TestFilesAreReadOnly(t *testing.T) {
	sandbox := newContainer(t, docker.Config{User: "1000:1000", Dir: "/tmp"})
	t.Cleanup(func() { _ = sandbox.Close(context.WithoutCancel(t.Context())) }) // the test is over
	bundle, _ := newBundle(t)
	require.NoError(t, bundle.Tool(skills.Options{}).Prepare(t.Context(), sandbox))
	got, err := sandbox.Execute(t.Context(), env.Command{Script: "cd /tmp/mini-skills/with-files; for f in scripts/hello.sh scripts/new new; do echo x 2>&1 > $f || echo refused; done; scripts/hello.sh"})
	if err != nil || strings.Count(string(got.Output), "refused") != 3 || !strings.HasSuffix(string(got.Output), "hello from scripts\n") {
		t.Errorf("%s, %v", got.Output, err)
	}
}

// failingSandbox is a sandbox that cannot receive files.
type failingSandbox struct {
	env.Environment
	err error
}

func (b failingSandbox) Put(context.Context, string, io.Reader) error { return b.err }
func (b failingSandbox) Get(context.Context, string, io.Writer) error { return b.err }

func TestNoFiles(t *testing.T) {
	bundle, _ := newBundle(t)
	for want, sandbox := range map[string]env.Environment{
		"Its files are not here: this sandbox does not take files\n": struct{ env.Environment }{},
		"Its files are not here: disk is \"full\"\n":                 failingSandbox{err: errors.New("disk is\n\"full\"")},
	} {
		tool := bundle.Tool(skills.Options{})
		require.NoError(t, tool.Prepare(t.Context(), sandbox))
		if res := call(t, tool, "with-files"); !strings.Contains(res.Output, want) || !strings.Contains(res.Output, "# Do") {
			t.Errorf("%s", res.Output)
		}
	}
	lost := &env.Error{Status: env.ContainerDied, Op: "put", Err: errors.New("gone")}
	if err := bundle.Tool(skills.Options{}).Prepare(t.Context(), failingSandbox{err: lost}); !errors.Is(err, lost) {
		t.Errorf("a lost sandbox: %v", err)
	}
	called := false
	o := skills.Options{Dir: func() (string, error) { called = true; return "", nil }}
	none, err := skills.NewBundle(bundle.Skills()[1:])
	require.NoError(t, err)
	if err := none.Tool(o).Prepare(t.Context(), failingSandbox{err: lost}); err != nil || called {
		t.Errorf("without files: %v, a folder was made: %t", err, called)
	}
}

// newContainer starts a container of the base image.
func newContainer(t *testing.T, c docker.Config) env.Environment {
	t.Helper()
	c.Image = dockertest.Image(t)
	sandbox, err := dockertest.Engine(t).Start(t.Context(), c)
	require.NoError(t, err)
	return sandbox
}

// script returns the path of a script of mini's skills.
func script(t *testing.T, skill, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("shipped", skill, "scripts", name))
	require.NoError(t, err)
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
	require.NoError(t, err)
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
	require.Equal(t, 0, code, "%v", out)
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
			require.NoError(t, os.CopyFS(dir, os.DirFS(origin)))
			before, _ := run(t, dir, "bash", "-c", "git status --porcelain --branch; cat number.txt untracked; git worktree list; git branch -a; git rev-parse HEAD")
			out, code := run(t, dir, append([]string{"bash", bisect}, tt.args...)...)
			if code != tt.code || !regexp.MustCompile(tt.want).MatchString(out) {
				t.Errorf("exit %d:\n%s", code, out)
			}
			after, _ := run(t, dir, "bash", "-c", "git status --porcelain --branch; cat number.txt untracked; git worktree list; git branch -a; git rev-parse HEAD")
			assert.Equal(t, before, after, "it has left")
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
	require.Equal(t, 0, code, "%v", out)
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
	require.Equal(t, 0, code, "%v", out)
	out, code = run(t, dir, "bash", script(t, "large-repositories", "map.sh"))
	for _, want := range []string{"8 files (git, 41 commits", "1\tsrc/app", "3 .py", "README.md", "src/app/main.py", "1\ttests", `pyproject.toml:2:testpaths`, "program.sh"} {
		assert.Contains(t, out, want)
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if out, code = run(t, t.TempDir(), "bash", script(t, "large-repositories", "map.sh")); code != 0 || !strings.Contains(out, "no git repository") {
		t.Errorf("an empty folder: exit %d:\n%s", code, out)
	}
}
