package worktree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// The content of a patch, whatever the agent did to git.
func TestDiff(t *testing.T) {
	junk := worktree.Config{Exclude: []string{"__pycache__/", "*.pyc", "/patch.txt", "kept.junk"}}
	tests := []struct {
		name         string
		seed, change []string // lines of a script
		cfg          worktree.Config
		contained    bool // as in a container, where the repository may name programs
		in, out      []string
	}{
		{
			name: "files",
			cfg:  junk,
			seed: []string{
				`echo '!kept.junk' >> .gitignore; echo 1 > old.pyc; git add -f old.pyc; mkdir inner dir`,
				`for n in r1 r2 hidden skipped place inner/f dir/f; do echo "of $n" > $n; done; git add .; git commit -qm more`,
			},
			change: []string{
				`mkdir -p p/__pycache__; echo x > p/__pycache__/a.pyc; echo x > b.pyc; echo x > patch.txt; echo x > sub/patch.txt`,
				`echo 2 > old.pyc; echo x > kept.junk; echo 1 > staged.pyc; git add -f staged.pyc; git commit -qm x; echo 2 > s.pyc; git add s.pyc`,
				`echo x > d.log; git add -f d.log; echo y > e.log`,
				`git mv r1 moved1; mv r2 moved2`,
				`git update-index --assume-unchanged hidden; git update-index --skip-worktree skipped; echo h >> hidden; echo s >> skipped`,
				`mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'`,
				`rm -r dir; ln -s /etc dir; rm place; mkdir place; echo i > place/i`,
				`(cd inner; git init -q .; echo new > n)`,
				`touch -d @1000000000 code.py; git update-index --refresh || :; echo "x = 2" > code.py; touch -d @1000000000 code.py .git/index`,
			},
			in: []string{
				"b/sub/patch.txt", "-1\n+2\n", "b/old.pyc", "b/kept.junk", "b/d.log", "deleted file mode", "a/r1", "b/moved1", "a/r2", "b/moved2",
				"+h\n", "+s\n", "120000", "a/dir/f", "b/place/i", "a/place", "b/inner/n", "-x = 1\n+x = 2",
			},
			out: []string{"a.pyc", "b.pyc", "staged.pyc", "s.pyc", " b/patch.txt", "e.log", "rename", "b/pipe\n", "b/socket\n", "passwd", "Subproject"},
		},
		{
			name:      "settings and filters",
			contained: true,
			seed:      []string{`git config filter.up.clean "tr a-z A-Z"; printf '*.up filter=up\n' > .gitattributes; git add .; git commit -qm up`},
			change: []string{
				`git update-index --split-index; git config core.splitIndex true; echo 1 >> crlf.txt; git add crlf.txt; echo 2 >> crlf.txt; echo loud > x.up`,
				`printf '*.txt filter=evil diff=evil\n' >> .gitattributes; git config filter.evil.clean "tr a-z A-Z"; git config diff.evil.textconv "tr a-z A-Z"; git config diff.evil.command false`,
				`printf 'w\r\n' > w.txt; chmod +x code.py; echo lower >> a.txt`,
				`for c in core.fsmonitor=true diff.context=0 diff.noprefix=true core.autocrlf=true core.bare=true core.worktree=/ diff.relative=true apply.whitespace=fix core.fileMode=false core.symlinks=false diff.suppressBlankEmpty=true core.excludesFile=/dev/stdin diff.external=false core.pager=false; do git config "$c" 2>/dev/null || git config "${c%%=*}" "${c#*=}"; done`,
			},
			in:  []string{"+1\n+2\n", "+w\r", "100755", " three\n+lower", "+LOUD"},
			out: []string{"LOWER"},
		},
		{
			name:   "another branch, and of the git directory only the objects are left",
			change: []string{"git checkout -q --orphan o; git rm -rqf --cached .; rm -rf .git/index .git/HEAD .git/refs .git/packed-refs; echo '[broken' > .git/config; echo x >> a.txt"},
			in:     []string{"+x"},
			out:    []string{"code.py"},
		},
		{
			name:   "HEAD replaced",
			change: []string{"git commit -q --allow-empty -m e; echo x >> a.txt; git commit -qam x; git replace HEAD~2 HEAD; echo y >> a.txt"},
			in:     []string{"+x", "+y"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t, seed, strings.Join(tt.seed, "\n"))
			sb := sandbox(t, local.Config{Dir: dir})
			if tt.contained {
				sb = container{sb}
			}
			tree, err := worktree.Open(t.Context(), sb, tt.cfg)
			require.NoError(t, err)
			sh(t, dir, strings.Join(tt.change, "\n"))
			diff, err := tree.Diff(t.Context())
			require.NoError(t, err)
			if !diff.Exact {
				t.Errorf("not exact: %s", diff.Problem)
			}
			checkPatch(t, diff.Patch, tt.in, tt.out)
		})
	}
}

// A patch stays below its limit. New files are left out before changed ones,
// and are listed.
func TestDiffSize(t *testing.T) {
	const limit = 100_000
	tests := []struct {
		name, change string
		in, omitted  []string
	}{
		{
			"large files and folders",
			`head -c 200000 /dev/zero > zero.bin; truncate -s 300G huge; mkdir h; truncate -s 300G h/huge code.py; head -c 300000 /dev/urandom > crlf.txt
mkdir venv; for i in $(seq 20); do head -c 60000 /dev/urandom > venv/$i; done; echo x >> a.txt; echo new > new.py`,
			[]string{"+x", "new.py"},
			[]string{"zero.bin", "huge", "code.py", "crlf.txt", "venv/"},
		},
		{"many small ones", "truncate -s 50G .git/index; for i in $(seq 40); do head -c 20000 /dev/urandom > sub/$i; done; echo x >> a.txt; echo new > new.py", []string{"+x", "new.py"}, []string{"sub/1"}},
		{"very many tiny ones", "for i in $(seq 500); do echo '" + strings.Repeat("y", 250) + "' > sub/$i; done; echo x >> a.txt", []string{"+x"}, []string{"sub/1"}},
		{"many changed", "for f in a.txt code.py crlf.txt; do seq 100000 > $f; done", nil, []string{"a.txt"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t, seed, "")
			tree := openWith(t, dir, worktree.Config{MaxPatch: limit})
			sh(t, dir, tt.change)
			diff, err := tree.Diff(t.Context())
			require.NoError(t, err)
			if len(diff.Patch) > limit || !diff.Exact {
				t.Errorf("%d bytes, exact %t: %s", len(diff.Patch), diff.Exact, diff.Problem)
			}
			checkPatch(t, diff.Patch, tt.in, nil)
			for _, name := range tt.omitted {
				if !slices.ContainsFunc(diff.Omitted, func(o worktree.Omission) bool { return o.Name == name }) || diff.OmittedCount < len(diff.Omitted) {
					t.Errorf("%q is not among the %d: %q", name, diff.OmittedCount, diff.Omitted)
				}
			}
		})
	}
}

// The diff does not need the agent's .git, which may be gone or another. It is against the
// objects of the start, loose or packed.
func TestRepositoryIsGone(t *testing.T) {
	for name, tt := range map[string]struct{ seed, change string }{
		"loose":            {"", "rm -rf .git"},
		"packed":           {"git gc -q", "rm -rf .git"},
		"another":          {"git gc -q", "rm -rf .git; git init -q .; git add -A; git commit -qm anew"},
		"with changes":     {"echo dirt >> code.py; git gc -q", "rm -rf .git; git init -q ."},
		"only the objects": {"git gc -q", "rm -rf .git/objects; git init -q ."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t, seed, tt.seed)
			tree := open(t, dir)
			sh(t, dir, tt.change+"; echo x >> a.txt; rm sub/latin.txt; echo new > new.txt; echo log > x.log")
			diff, err := tree.Diff(t.Context())
			if err != nil || !diff.Exact {
				t.Fatalf("%v, exact %t: %s", err, diff.Exact, diff.Problem)
			}
			checkPatch(t, diff.Patch, []string{"+x", "GIT binary patch", "b/new.txt"}, []string{"dirt", "b/x.log"})
			if checked, err := tree.Check(t.Context(), diff.Patch); err != nil || checked.Tree != diff.Tree {
				t.Errorf("%v, %+v", err, checked)
			}
			if hash, err := tree.Hash(t.Context()); err != nil || hash != diff.Tree {
				t.Errorf("%v, %s", err, hash)
			}
			if left := sh(t, dir, "ls -A; find .git -newer a.txt -type f || :"); strings.Contains(left, "mini") {
				t.Errorf("left behind:\n%s", left)
			}
		})
	}
}

func TestWithoutGit(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), repository(t, seed, "")
	sb := disposable{sandbox(t, local.Config{Dir: dir, Env: map[string]string{"PATH": bin}})}
	tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
	if err != nil || tree.Base != "" || tree.Missing != "no git" {
		t.Fatalf("%v, %+v", err, tree)
	}
	if diff, err := tree.Diff(t.Context()); err != nil || diff.Patch != nil {
		t.Errorf("%v, %+v", err, diff)
	}
	_, err = worktree.Scrub(t.Context(), sb)
	assert.ErrorContains(t, err, "no git")
}

// A file that git rejects does not affect others, and is listed with the
// reason.
func TestFilesThatGitRejects(t *testing.T) {
	t.Parallel()
	dir := repository(t, seed, `printf '*.up filter=up\n' > .gitattributes; echo e > old.enc; git add .; git commit -qm up; git config filter.up.clean false; git config filter.up.required true`)
	// As in a container, where the repository may name filters.
	tree, err := worktree.Open(t.Context(), container{sandbox(t, local.Config{Dir: dir})}, worktree.Config{})
	require.NoError(t, err)
	sh(t, dir, `mkdir many; for i in $(seq 300); do echo $i > many/$i; done
printf '*.enc working-tree-encoding=UTF-16\n' >> .gitattributes; for i in 1 2 3 4 5 6 7 8; do echo x > sub/$i.enc; echo x > sub/$i; done
echo x > many/150.enc; echo x > z.enc; echo x >> old.enc; echo x > x.up; echo x > many/git~1
mkdir -p new/.git new/deep/.git new/er; echo x > new/f; echo x > new/deep/f; echo x > new/deep/.git/x; echo x > new/er/f
mkdir -p more/deep; echo x > more/f; echo x > more/deep/f; git init -q more/deep/own; echo x > more/deep/own/f
git init -q own; echo z > own/f; git -C own add f; git -C own commit -qm z
rm code.py; mkfifo code.py; echo x >> a.txt`)
	diff, err := tree.Diff(t.Context())
	if err != nil || !diff.Exact {
		t.Fatalf("%v, exact %t: %s", err, diff.Exact, diff.Problem)
	}
	in := []string{"+x", "b/.gitattributes", "b/many/1\n", "b/many/300\n", "b/sub/1\n", "b/sub/8\n", "b/new/f", "b/new/deep/f", "b/new/er/f", "b/more/f", "b/more/deep/f"}
	want := map[string]string{
		"many/150.enc": "BOM is required", "z.enc": "BOM is required", "old.enc": "BOM is required", "x.up": "filter", "many/git~1": "Ignoring path",
		"own/": "repository of its own", "more/deep/own/": "repository of its own", "code.py": "neither a file nor a link",
	}
	for i := range 8 {
		want[fmt.Sprintf("sub/%d.enc", i+1)] = "BOM is required"
	}
	out := []string{"Subproject"}
	for name := range want {
		out = append(out, "b/"+name)
	}
	checkPatch(t, diff.Patch, in, out)
	reasons := map[string]string{}
	for _, o := range diff.Omitted {
		reasons[o.Name] = o.Reason
		if part, ok := want[o.Name]; ok && strings.Contains(o.Reason, part) {
			reasons[o.Name] = part
		}
	}
	assert.NoDiff(t, cmp.Diff(want, reasons), "left out with reasons (-want +got)")
}

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
			require.NoError(t, os.Mkdir(dir, 0o700))
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
			require.NoError(t, os.WriteFile(filepath.Join(fresh, "..", "p.diff"), diff.Patch, 0o600))
			sh(t, fresh, "git apply ../p.diff")
			skip := []string{".git", "x.o"}
			want, got := files(t, dir, skip...), files(t, fresh, skip...)
			assert.NoDiff(t, cmp.Diff(want, got), "the patch gives other files (-want +got)")
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
	require.NoError(t, os.Mkdir(dir, 0o700))
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
		require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(user), 0o600))
		sb := disposableIn(t, dir, home)
		tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
		require.NoError(t, err)
		sh(t, dir, "rm -f .git/info/attributes; echo loud >> a.txt; echo x >> lib/sub/s.txt; rm -f "+ran)
		diff, err := tree.Diff(t.Context())
		if err != nil || !diff.Exact {
			t.Fatalf("%v, exact %t: %s", err, diff.Exact, diff.Problem)
		}
		if want := map[bool]string{true: "+LOUD", false: "+loud"}[user != ""]; !strings.Contains(string(diff.Patch), want) {
			t.Errorf("no %q in\n%s", want, diff.Patch)
		}
		_, err = tree.Check(t.Context(), diff.Patch)
		assert.NoError(t, err)
		if text, err := os.ReadFile(ran); err == nil {
			t.Errorf("the repository's programs were run:\n%s", text)
		}
	}
	_, err := worktree.Scrub(t.Context(), disposableIn(t, dir, home))
	assert.NoError(t, err)
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("the repository's programs were run by the scrub:\n%s", text)
	}
}
