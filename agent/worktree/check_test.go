package worktree_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// A patch is accepted if git apply accepts it on a clean tree, whatever the
// state of the working tree.
func TestCheck(t *testing.T) {
	t.Parallel()
	const change = `printf 'two\n2\n' > two; printf 'one\nzwei\nthree\n' > a.txt; printf 'exact\r\nother\r\n' > crlf.txt; { printf '\0'; head -c 300 /dev/urandom; } > blob; chmod +x code.py; git mv link knil; printf 'x = 2' > sub/no-end; `
	tests := []struct {
		name, make string // make prints the patch, in a copy after change
		refusal    string // "" for an accepted patch
		mended     bool
	}{
		{"git diff", "git add -A; git diff --cached --binary HEAD", "", false},
		{"with a rename", "git add -A; git diff --cached --binary -M HEAD", "", false},
		{"with a copy", "cp sub/latin.txt copy; git add -A; git diff --cached --binary -C --find-copies-harder HEAD -- copy", "", false},
		{"one file of several", "git diff -- a.txt", "", false},
		{"a mode alone", "git diff -- code.py", "", false},
		{"lines that end in CRLF", "git diff -- crlf.txt", "", false},
		{"with words before and after", "echo 'Here it is:'; git diff -- a.txt; echo; echo Done.", "", false},
		{"as a mail", "git add -A; git -c user.name=a -c user.email=a@b commit -qm m; git format-patch --stdout -1", "", false},
		{"without its last line end", `printf %s "$(git diff -- a.txt)"`, "", true},
		{"not UTF-8, without its last line end", `printf 'caf\xe9\nz\n' > sub/latin.txt; printf %s "$(git diff -- sub/latin.txt)"`, "", true},
		{"binary, its last empty line gone", `git add -A; echo "$(git diff --cached --binary -- blob)"`, "", true},
		{"binary, its last line ends gone", `git add -A; printf %s "$(git diff --cached --binary -- blob)"`, "", true},
		{"quotes and dollars", `echo "a'b\$(touch /nonexistent/x)\\\` + "`" + `" >> a.txt; git diff -- a.txt`, "", false},
		{"words", "echo I am done.", "No valid patches", false},
		{"empty lines", "echo; echo", "empty", false},
		{"cut short", "git diff -- a.txt | head -n 8", "corrupt patch", false},
		{"trailing space gone", "printf 'one\\n\\nthree\\n' > sub/n; git add sub/n; git -c user.name=a -c user.email=a@b commit -qm n; printf 'one\\n\\n3\\n' > sub/n; git diff -- sub/n", "sub/n", false},
		{"CRLF all over", "git diff -- a.txt | sed 's/$/\\r/'", "a.txt", false},
		{"no prefixes", "git diff --no-prefix -- sub/no-end a.txt code.py | sed 's/a.txt/sub.txt/'", "error", false},
		{"below a folder", "cd sub; git add -A .; git diff --cached --relative HEAD; printf 'diff --git a/latin.txt b/latin.txt\\n--- a/latin.txt\\n+++ b/latin.txt\\n@@ -1,2 +1,2 @@\\n caf\\n-un\\n+deux\\n'", "latin.txt", false},
		{"other context", "git diff -- a.txt | sed 's/^ one/ eins/'", "a.txt", false},
		{"no context", "git diff -U0 -- a.txt", "a.txt", false},
		{"outside", `printf 'diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n'`, "invalid path", false},
		{"into .git", `printf 'diff --git a/.git/x b/.git/x\nnew file mode 100644\n--- /dev/null\n+++ b/.git/x\n@@ -0,0 +1 @@\n+x\n'`, "invalid path", false},
		{"through a link", `printf 'diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/tmp\n\\\\ No newline at end of file\ndiff --git a/l/x b/l/x\nnew file mode 100644\n--- /dev/null\n+++ b/l/x\n@@ -0,0 +1 @@\n+x\n'`, "error", false},
		{"a NUL", `printf 'a\0b'`, "NUL", false},
		{"too long", "seq 100000", "588895 bytes", false},
	}
	dir := repository(t, seed, "")
	tree := openWith(t, dir, worktree.Config{MaxPatch: 500_000})
	sh(t, dir, change)
	before := files(t, dir, ".git")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := []byte(sh(t, t.TempDir(), "cp -a "+dir+" copy; cd copy; "+tt.make))
			found, err := tree.Check(t.Context(), text)
			require.NoError(t, err)
			if tt.refusal != "" {
				if !strings.Contains(found.GitError, tt.refusal) || len(found.GitError) > 2100 || found.Patch != nil {
					t.Errorf("refusal %q lacks %q", found.GitError, tt.refusal)
				}
				return
			}
			if found.GitError != "" || found.NewlineAdded != tt.mended || len(found.Tree) != 40 {
				t.Fatalf("%+v\nof\n%s", found, text)
			}
			want := string(text)
			if tt.mended {
				want = strings.TrimRight(want, "\n") + "\n"
				if strings.Contains(want, "GIT binary") {
					want += "\n"
				}
			}
			if utf8.Valid(text) && string(found.Patch) != want {
				t.Errorf("the patch was changed:\n%q\n%q", want, found.Patch)
			}
			if !utf8.Valid(found.Patch) || found.Regenerated == utf8.Valid(text) {
				t.Errorf("remade %t: %q", found.Regenerated, found.Patch)
			}
		})
	}
	assert.NoDiff(t, cmp.Diff(before, files(t, dir, ".git")), "the files changed")
}

func TestCheckWithoutRepository(t *testing.T) {
	t.Parallel()
	_, err := open(t, t.TempDir()).Check(t.Context(), []byte("x"))
	assert.ErrorContains(t, err, "no git repository")
}

// Files are laid out as the base's attributes say, also where the patch is not
// about these.
func TestAttributesOfTheBase(t *testing.T) {
	t.Parallel()
	dir := repository(t, seed, `
printf '*.crlf text eol=crlf\n' > .gitattributes; printf '*.enc text working-tree-encoding=UTF-16\n' > sub/.gitattributes
printf 'a\r\nb\r\n' > one.crlf; printf 'hello\n' | iconv -t UTF-16 > sub/x.enc; git add -A; git commit -qm attributes`)
	tree := open(t, dir)
	text := sh(t, dir, `printf 'a\r\nc\r\n' > one.crlf; printf 'hello\nyou\n' | iconv -t UTF-16 > sub/x.enc; git diff`)
	found, err := tree.Check(t.Context(), []byte(text))
	if err != nil || found.GitError != "" {
		t.Errorf("%v, %s", err, found.GitError)
	}
	if diff, err := tree.Diff(t.Context()); err != nil || !diff.Exact || diff.Tree != found.Tree {
		t.Errorf("%v, exact %t: %s", err, diff.Exact, diff.Problem)
	}
}
