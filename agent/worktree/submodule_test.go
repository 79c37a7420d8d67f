package worktree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/worktree"
)

// withSubmodules is a repository with a submodule that has one itself, one whose commit
// moved, and one that is not checked out.
const withSubmodules = `allow='-c protocol.file.allow=always'
for n in inner moved empty; do git init -q -b main ../$n; (cd ../$n; echo $n > f.txt; git add f.txt; git commit -qm $n); done
git init -q -b main ../sub; (cd ../sub; echo s1 > s.txt; printf '*.o\n' > .gitignore; git add .; git $allow submodule --quiet add ../inner deep/inner; git commit -qm s)
git init -q -b main .; echo one > a.txt; git add a.txt
for n in sub moved empty; do git $allow submodule --quiet add ../$n lib/$n; done
git $allow submodule --quiet update --init --recursive
git commit -qm base; git submodule --quiet deinit -f lib/empty
(cd lib/moved; echo more > g.txt; git add .; git commit -qm more)`

// The files of submodules are as those of the repository: their changes are in the patch,
// which applies to the files at the start, and so does that of git diff --submodule=diff.
func TestSubmodules(t *testing.T) {
	for name, tt := range map[string]struct {
		change  string
		in, out []string
	}{
		"nothing":        {"", nil, nil},
		"a file":         {"echo edited >> lib/sub/s.txt; echo x > lib/sub/x.o", []string{"a/lib/sub/s.txt b/lib/sub/s.txt", "+edited"}, []string{"x.o", "Subproject"}},
		"a new file":     {"echo n > lib/sub/new.txt; echo x >> a.txt", []string{"b/lib/sub/new.txt", "b/a.txt"}, nil},
		"a deeper file":  {"echo i >> lib/sub/deep/inner/f.txt", []string{"b/lib/sub/deep/inner/f.txt"}, nil},
		"a commit":       {"cd lib/sub; echo c > c.txt; git add .; git commit -qm c; cd ../..; git add lib/sub; git commit -qm moved", []string{"b/lib/sub/c.txt"}, []string{"Subproject"}},
		"an older one":   {"cd lib/moved; git checkout -q HEAD~1", []string{"a/lib/moved/g.txt", "deleted file"}, []string{"Subproject"}},
		"it is removed":  {"rm -rf lib/moved .git/modules/lib/moved", []string{"a/lib/moved/g.txt", "a/lib/moved/f.txt"}, []string{"Subproject"}},
		"a dirty config": {"git -C lib/sub config filter.x.clean false; echo '* filter=x' > lib/sub/.gitattributes; echo y >> lib/sub/s.txt", []string{"+y"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "repo")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			sh(t, dir, withSubmodules+"; cp -a . ../fresh")
			tree := open(t, dir)
			sh(t, dir, tt.change)
			diff, err := tree.Diff(t.Context())
			if err != nil || !diff.Exact || diff.OmittedCount > 0 || (len(diff.Patch) > 0) != (tt.in != nil) {
				t.Fatalf("%v, exact %t, %s, %q\n%s", err, diff.Exact, diff.Problem, diff.Omitted, diff.Patch)
			}
			checkPatch(t, diff.Patch, tt.in, tt.out)
			if name == "it is removed" {
				return // another sandbox has no objects of it
			}
			state := tree.Start()
			again, err := openWith(t, dir, worktree.Config{Start: &state}).Diff(t.Context())
			if err != nil || !cmp.Equal(again, diff) {
				t.Errorf("with the recorded state: %v, the diff is another:\n%s", err, cmp.Diff(diff, again))
			}
			if tt.in == nil {
				return
			}
			fresh := filepath.Join(dir, "..", "fresh")
			if err := os.WriteFile(filepath.Join(fresh, "..", "p.diff"), diff.Patch, 0o600); err != nil {
				t.Fatal(err)
			}
			sh(t, fresh, "git apply ../p.diff")
			skip := []string{".git", "x.o"}
			want, got := files(t, dir, skip...), files(t, fresh, skip...)
			if other := cmp.Diff(want, got); other != "" {
				t.Errorf("the patch gives other files (-want +got):\n%s", other)
			}
			if name == "a file" {
				text := sh(t, dir, "git diff --submodule=diff -- lib/sub")
				found, err := tree.Check(t.Context(), []byte(text))
				if err != nil || found.GitError != "" || found.Tree != diff.Tree {
					t.Errorf("%v, %+v\nof\n%s", err, found, text)
				}
			}
		})
	}
}

// No program that a repository names runs on the host, whatever the setting. Filters of the
// user's own configuration do.
func TestProgramsOfTheRepository(t *testing.T) {
	t.Parallel()
	home, root := t.TempDir(), t.TempDir()
	dir := filepath.Join(root, "repo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(root, "ran")
	sh(t, dir, withSubmodules+`
echo '*.txt filter=own diff=evil merge=evil' > .gitattributes; git add .; git commit -qm attributes
cat >../evil <<'X'
#!/bin/sh
echo "$0 $*" >> `+ran+`
exec cat
X
chmod +x ../evil
for r in . lib/sub lib/moved; do (cd $r
for key in filter.evil.clean filter.evil.smudge filter.evil.process filter.own.clean filter.own.process core.fsmonitor core.sshCommand core.gitProxy core.askPass core.alternateRefsCommand core.pager core.editor 	credential.helper diff.external diff.evil.command diff.evil.textconv merge.evil.driver gpg.program uploadpack.packObjectsHook remote.origin.vcs remote.origin.uploadpack sequence.editor trailer.x.command; do
	git config $key `+root+`/evil; done
git config filter.evil.required true; git config core.hooksPath `+root+`/hooks; git config include.path `+root+`/included
git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url ext::`+root+`/evil; git config protocol.ext.allow always)
done
mkdir ../hooks; for h in post-checkout post-index-change reference-transaction pre-commit post-rewrite fsmonitor-watchman; do cp ../evil ../hooks/$h; done; cp ../hooks/* .git/hooks/
printf '[filter "own"]\n\tclean = %s\n' `+root+`/evil > ../included
echo '*.txt filter=evil diff=evil' > .git/info/attributes
rm -f `+ran)
	for _, user := range []string{"", "[filter \"own\"]\n\tclean = tr a-z A-Z\n"} {
		if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(user), 0o600); err != nil {
			t.Fatal(err)
		}
		sb := disposableIn(t, dir, home)
		tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
		if err != nil {
			t.Fatal(err)
		}
		sh(t, dir, "rm -f .git/info/attributes; echo loud >> a.txt; echo x >> lib/sub/s.txt; rm -f "+ran)
		diff, err := tree.Diff(t.Context())
		if err != nil || !diff.Exact {
			t.Fatalf("%v, exact %t: %s", err, diff.Exact, diff.Problem)
		}
		if want := map[bool]string{true: "+LOUD", false: "+loud"}[user != ""]; !strings.Contains(string(diff.Patch), want) {
			t.Errorf("no %q in\n%s", want, diff.Patch)
		}
		if _, err := tree.Check(t.Context(), diff.Patch); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(ran); err == nil {
			t.Errorf("the repository's programs were run:\n%s", text)
		}
	}
	if _, err := worktree.Scrub(t.Context(), disposableIn(t, dir, home)); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("the repository's programs were run by the scrub:\n%s", text)
	}
}
