package worktree_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// sh runs a script in a folder, outside the sandbox.
func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", script)
	cmd.Dir = dir
	cmd.Env = environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func environ() []string {
	// Missing files and not /dev/null: git replaces the file whose settings it
	// changes, and as root it would replace the device.
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/nonexistent/global", "GIT_CONFIG_SYSTEM=/nonexistent/system",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "LC_ALL=C.UTF-8")
}

const seed = `git init -q -b main .
printf 'one\ntwo\nthree\n' > a.txt
mkdir sub && printf 'caf\xe9\nun\n' > sub/latin.txt
printf 'x = 1\n' > code.py
printf '*.log\n' > .gitignore
printf 'exact\r\nlines\r\n' > crlf.txt
ln -s a.txt link
git add -A && git commit -qm base`

func open(t *testing.T, dir string) *worktree.Tree { return openWith(t, dir, worktree.Config{}) }

func openWith(t *testing.T, dir string, cfg worktree.Config) *worktree.Tree {
	t.Helper()
	tree, err := worktree.Open(t.Context(), sandbox(t, local.Config{Dir: dir}), cfg)
	require.NoError(t, err)
	return tree
}

func sandbox(t *testing.T, cfg local.Config) env.Environment {
	t.Helper()
	cfg.Helper = childtest.Program(t)
	sb, err := local.New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sb.Close(context.WithoutCancel(t.Context()))) })
	return sb
}

// files returns the mode and the content of every file and link below a folder, except those below
// the folders named skip.
func files(t *testing.T, dir string, skip ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(skip, entry.Name()) && entry.IsDir():
			return filepath.SkipDir
		case entry.IsDir() || slices.Contains(skip, entry.Name()):
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().Type() == fs.ModeSymlink:
			content, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var data []byte
			if data, err = os.ReadFile(path); len(data) > 100 {
				data = fmt.Appendf(nil, "%d bytes with the hash %x", len(data), sha256.Sum256(data))
			}
			content = string(data)
		}
		all[strings.TrimPrefix(path, dir+"/")] = fmt.Sprintf("%s %q", info.Mode(), content)
		return err
	})
	require.NoError(t, err)
	return all
}

// A diff applied to a fresh clone of the base gives the same files, and leaves
// no trace in the repository.
func TestDiffReproducesTheTree(t *testing.T) {
	tests := []struct {
		name         string
		seed, change []string // lines of a script
		want         []string
	}{
		{
			name: "files",
			seed: []string{`mkdir place; for n in gone end.txt became place/f; do echo one > $n; done; git add .; git commit -qm more`},
			change: []string{
				`git config diff.noprefix true; git config color.diff always; git config diff.external false`,
				`echo four >> a.txt; echo new > new.txt; rm gone; seq 1 20000 > big.txt; echo x > debug.log`,
				`head -c 3000 /dev/urandom > blob.bin; printf 'caf\xe9\ndeux\n' > sub/latin.txt; printf '\xfc\n' > neu.txt`,
				`printf '*.py diff=python\n' > .gitattributes; printf '# \xe9\n' > code.py; chmod +x code.py`,
				`printf 'exact\r\nlines\nmixed\r\n' > crlf.txt; printf 'no end' > end.txt`,
				`ln -sf code.py link; ln -s nowhere dangling; rm became; mkdir became; echo in > became/in; rm -r place; echo f > place`,
				`mkdir 'd r'; for n in 'sp ace' 'q"uote' "a'b" 'st*r[x]' '-rf' 'tab	x' 'žluť' '#h' '!bang' 'back\slash'; do printf '\xe9 %s' "$n" > "./$n"; printf '\xe9' > "d r/$n"; done`,
			},
			want: []string{"a/a.txt", "+four", "new.txt", "+20000", "GIT binary patch", "+mixed\r", "No newline", "100755", "+++ b/became/in", `\305\276lu`},
		},
		{
			name: "the index and commits",
			change: []string{
				"echo c >> a.txt; git add -A; git commit -qm own; echo d >> a.txt",
				"echo s > s.txt; git add s.txt; echo t >> s.txt; git rm -q --cached code.py; echo x >> code.py",
			},
			want: []string{"+c\n+d", "+s\n+t", "+x"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, clone := repository(t, seed, strings.Join(tt.seed, "\n")), filepath.Join(t.TempDir(), "clone")
			sh(t, ".", "git clone -q "+dir+" "+clone)
			tree := open(t, dir)
			sh(t, dir, strings.Join(tt.change, "\n"))
			before := files(t, filepath.Join(dir, ".git"))

			diff, err := tree.Diff(t.Context())
			require.NoError(t, err)
			patch := diff.Patch
			if !diff.Exact || diff.OmittedCount > 0 {
				t.Errorf("exact %t, problem %q, left out %q", diff.Exact, diff.Problem, diff.Omitted)
			}
			checkPatch(t, patch, tt.want, nil)
			if !utf8.Valid(patch) {
				t.Errorf("the patch is not UTF-8:\n%q", patch)
			}
			assert.NoDiff(t, cmp.Diff(before, files(t, filepath.Join(dir, ".git"))), "the repository was changed")
			require.NoError(t, os.WriteFile(filepath.Join(clone, "..", "p.diff"), patch, 0o600))
			sh(t, clone, "git apply ../p.diff")
			assert.NoDiff(t, cmp.Diff(files(t, dir, ".git", "debug.log"), files(t, clone, ".git")), "the patch gives other files (-want +got)\npatch:\n%.3000s", patch)
		})
	}
}

// checkPatch checks that a patch has some texts and lacks others.
func checkPatch(t *testing.T, patch []byte, in, out []string) {
	t.Helper()
	for _, want := range in {
		if !bytes.Contains(patch, []byte(want)) {
			t.Errorf("no %q in\n%.5000s", want, patch)
		}
	}
	for _, not := range out {
		if bytes.Contains(patch, []byte(not)) {
			t.Errorf("%q is in\n%.5000s", not, patch)
		}
	}
}

// Neither the agent's interpreter nor programs in the repository's settings
// affect a diff.
func TestDiffIgnoresInterpreter(t *testing.T) {
	t.Parallel()
	dir := repository(t, seed, `git config core.fsmonitor "touch $PWD/pwned; false"`)
	chatty := []string{"bash", "-c", "echo hello; exec bash -c \"$0\""}
	tree, err := worktree.Open(t.Context(), sandbox(t, local.Config{Dir: dir, Interpreter: chatty}), worktree.Config{})
	require.NoError(t, err)
	sh(t, dir, "echo x >> a.txt")
	diff, err := tree.Diff(t.Context())
	if err != nil || !bytes.Contains(diff.Patch, []byte("+x")) {
		t.Errorf("%v, patch %q", err, diff.Patch)
	}
	_, err = os.Stat(filepath.Join(dir, "pwned"))
	assert.Error(t, err, "a program of the repository's settings was run")
}

func TestSmallRepositories(t *testing.T) {
	for name, tt := range map[string]struct {
		seed, change, want string
		base               bool
	}{
		"no repository":       {"true", "echo x > f", "", false},
		"no commit yet":       {"git init -q .", "echo x > f", "new file", true},
		"below the top":       {seed + "; mkdir -p here", "echo x >> ../a.txt", "a/a.txt", true},
		"a linked work tree":  {seed + "; git worktree add -q here", "echo x >> a.txt", "a/a.txt", true},
		"a broken index":      {seed, "echo junk > .git/index; echo x >> a.txt", "+x", true},
		"detached, with tags": {seed + "; git tag v1; git checkout -q --detach", "echo x >> a.txt", "+x", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, tt.seed)
			if _, err := os.Stat(filepath.Join(dir, "here")); err == nil {
				dir = filepath.Join(dir, "here")
			}
			tree := open(t, dir)
			if (tree.Base != "") != tt.base {
				t.Errorf("base is %q", tree.Base)
			}
			sh(t, dir, tt.change)
			diff, err := tree.Diff(t.Context())
			if err != nil || !strings.Contains(string(diff.Patch), tt.want) || tt.want == "" && len(diff.Patch) > 0 {
				t.Errorf("%v, %q in:\n%s", err, tt.want, diff.Patch)
			}
		})
	}
}

func TestPatchNotUTF8(t *testing.T) {
	t.Parallel()
	dir := repository(t, seed, "")
	tree := open(t, dir)
	sh(t, dir, `printf 'caf\xe9\ndeux\n' > sub/latin.txt; echo "it's" >> a.txt`)
	raw := []byte(sh(t, dir, "git diff"))
	if utf8.Valid(raw) {
		t.Fatal("the patch should not be UTF-8")
	}
	want := files(t, dir, ".git")
	found, err := tree.Check(t.Context(), raw)
	if err != nil || !found.Regenerated || !utf8.Valid(found.Patch) {
		t.Fatalf("%v, %+v", err, found)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "p.diff"), found.Patch, 0o600))
	sh(t, dir, "git checkout -q . && git apply .git/p.diff")
	assert.NoDiff(t, cmp.Diff(want, files(t, dir, ".git")), "other files (-want +got)\npatch:\n%s", found.Patch)
	if found, err := tree.Check(t.Context(), []byte("no patch \xff")); err != nil || found.GitError == "" {
		t.Errorf("%v, %+v", err, found)
	}
}
