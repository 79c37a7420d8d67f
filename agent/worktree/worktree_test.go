package worktree_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
)

// sh runs a script in a folder, outside the sandbox.
func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", script)
	cmd.Dir = dir
	// Missing files and not /dev/null: git replaces the file whose settings it
	// changes, and as root it would replace the device.
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/nonexistent/global", "GIT_CONFIG_SYSTEM=/nonexistent/system",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
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
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func sandbox(t *testing.T, cfg local.Config) env.Environment {
	t.Helper()
	sb, err := local.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return sb
}

// listing lists every file of a working tree with mode and content.
const listing = `find . -name .git -prune -o -not -type d -printf '%P %m %l\n' | LC_ALL=C sort
find . -name .git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum`

// A diff applied to a fresh clone of the base gives the same files, and leaves
// no trace in the repository.
func TestDiffReproducesTheTree(t *testing.T) {
	tests := []struct{ name, change, want string }{
		{"nothing", "true", ""},
		{"edit, add, delete", "echo four >> a.txt; echo new > new.txt; rm code.py", "new.txt"},
		{"ignored files stay out", "echo x > debug.log; echo y >> a.txt", "a.txt"},
		{"binary", `head -c 3000 /dev/urandom > blob.bin`, "GIT binary patch"},
		{"text that is not UTF-8", `printf 'caf\xe9\ndeux\n' > sub/latin.txt`, "GIT binary patch"},
		{"new text that is not UTF-8", `printf '\xfc\n' > neu.txt; echo z >> a.txt`, "+z"},
		{"not UTF-8 under a diff driver", `printf '*.py diff=python\n' > .gitattributes; printf '# \xe9\n' > code.py`, "GIT binary patch"},
		{"line ends", `printf 'exact\r\nlines\nmixed\r\n' > crlf.txt`, "+mixed\r"},
		{"no newline at the end", `printf 'no end' > a.txt`, "No newline"},
		{"modes and links", "chmod +x code.py; ln -sf code.py link; ln -s nowhere dangling", "100755"},
		{"odd names", `mkdir 'd r'; for n in 'sp ace' 'q"uote' "a'b" 'st*r[x]' '-rf' 'tab	x' 'žluť' '#h' '!bang' 'back\slash'; do printf '\xe9 %s' "$n" > "./$n"; printf '\xe9' > "d r/$n"; done`, `\305\276lu`},
		{"a commit of the agent's own", "echo c >> a.txt; git add -A; git commit -qm own; echo d >> a.txt", "+d"},
		{"staged and changed again", "echo s > s.txt; git add s.txt; echo t >> s.txt", "+t"},
		{"removed from the index only", "git rm -q --cached a.txt; echo x >> a.txt", "+x"},
		{"the user's settings", "git config diff.noprefix true; git config color.diff always; git config diff.external false; echo e >> a.txt", "a/a.txt"},
		{"a file becomes a folder", "rm a.txt; mkdir a.txt; echo in > a.txt/in", "a.txt/in"},
		{"a large change", "seq 1 200000 > big.txt", "+200000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, clone := filepath.Join(t.TempDir(), "repo"), filepath.Join(t.TempDir(), "clone")
			sh(t, ".", "mkdir -p "+dir)
			sh(t, dir, seed)
			sh(t, ".", "git clone -q "+dir+" "+clone)
			tree := open(t, dir)
			sh(t, dir, tt.change)
			before := sh(t, dir, "find .git -type f | sort | xargs sha256sum")

			diff, err := tree.Diff(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			patch := diff.Patch
			if !diff.Exact || diff.OmittedCount > 0 {
				t.Errorf("exact %t, problem %q, left out %q", diff.Exact, diff.Problem, diff.Omitted)
			}
			if !utf8.Valid(patch) || !strings.Contains(string(patch), tt.want) {
				t.Errorf("patch is not UTF-8 or lacks %q:\n%.2000s", tt.want, patch)
			}
			if after := sh(t, dir, "find .git -type f | sort | xargs sha256sum"); after != before {
				t.Errorf("the repository was changed:\n%s\n%s", before, after)
			}
			if len(patch) > 0 {
				if err := os.WriteFile(filepath.Join(clone, "..", "p.diff"), patch, 0o600); err != nil {
					t.Fatal(err)
				}
				sh(t, clone, "git apply ../p.diff")
			}
			want, got := sh(t, dir, "rm -f debug.log; "+listing), sh(t, clone, listing)
			if want != got {
				t.Errorf("the patch gives other files.\nwant:\n%s\ngot:\n%s\npatch:\n%.3000s", want, got, patch)
			}
		})
	}
}

// Neither the agent's interpreter nor programs in the repository's settings
// affect a diff.
func TestDiffIgnoresInterpreter(t *testing.T) {
	for name, shell := range map[string][]string{"sh": {"sh", "-c"}, "chatty": {"bash", "-c", "echo hello; exec bash -c \"$0\""}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sh(t, dir, seed+`
git config core.fsmonitor "touch $PWD/pwned; false"`)
			tree, err := worktree.Open(t.Context(), sandbox(t, local.Config{Dir: dir, Interpreter: shell}), worktree.Config{})
			if err != nil {
				t.Fatal(err)
			}
			sh(t, dir, "echo x >> a.txt")
			diff, err := tree.Diff(t.Context())
			if err != nil || !bytes.Contains(diff.Patch, []byte("+x")) {
				t.Errorf("%v, patch %q", err, diff.Patch)
			}
			if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
				t.Error("a program of the repository's settings was run")
			}
		})
	}
}

func TestNestedRepositoriesAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, seed)
	tree := open(t, dir)
	sh(t, dir, `echo x >> a.txt
git init -q empty-repo && echo y > empty-repo/f
mkdir -p deep/er && git init -q deep/er/repo && cd deep/er/repo && echo z > f && git add f && git commit -qm z
echo w > ../beside`)
	diff, err := tree.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	patch := diff.Patch
	for _, name := range []string{"empty-repo", "deep/er/repo", "Subproject"} {
		if bytes.Contains(patch, []byte(name)) {
			t.Errorf("%s is in the patch:\n%s", name, patch)
		}
	}
	for _, name := range []string{"+x", "deep/er/beside"} {
		if !bytes.Contains(patch, []byte(name)) {
			t.Errorf("%s is not in the patch:\n%s", name, patch)
		}
	}
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
	dir := t.TempDir()
	sh(t, dir, seed)
	tree := open(t, dir)
	sh(t, dir, `printf 'caf\xe9\ndeux\n' > sub/latin.txt; echo "it's" >> a.txt`)
	raw := []byte(sh(t, dir, "git diff"))
	if utf8.Valid(raw) {
		t.Fatal("the patch should not be UTF-8")
	}
	want := sh(t, dir, listing)
	found, err := tree.Check(t.Context(), raw)
	if err != nil || !found.Regenerated || !utf8.Valid(found.Patch) {
		t.Fatalf("%v, %+v", err, found)
	}
	if err := os.WriteFile(filepath.Join(dir, ".git", "p.diff"), found.Patch, 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "git checkout -q . && git apply .git/p.diff")
	if got := sh(t, dir, listing); got != want {
		t.Errorf("want:\n%s\ngot:\n%s\npatch:\n%s", want, got, found.Patch)
	}
	if found, err := tree.Check(t.Context(), []byte("no patch \xff")); err != nil || found.GitError == "" {
		t.Errorf("%v, %+v", err, found)
	}
}
