package undo_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/agent/worktree/undo"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := seeded(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// sh runs a script in a folder.
func sh(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", script)
	cmd.Dir = dir
	cmd.Env = gitEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func gitEnv() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/nonexistent/global", "GIT_CONFIG_SYSTEM=/nonexistent/system",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "LC_ALL=C.UTF-8")
}

// seed is a repository with staged, unstaged, untracked and ignored changes of the user.
const seed = `umask 022; git init -q -b main .
printf 'one\ntwo\nthree\n' > a.txt
mkdir sub && printf 'caf\xe9\nun\n' > sub/latin.txt
printf 'x = 1\n' > code.py; chmod +x code.py
printf '*.log\n/build/\n' > .gitignore
printf 'exact\r\nlines\r\n' > crlf.txt
head -c 3000 /dev/urandom > blob
ln -s a.txt link
mkdir many && for i in 1 2 3 4 5 6 7 8; do seq $i 100 > many/$i; done
git add -A && git commit -qm base
echo staged >> a.txt; git add a.txt; echo more >> a.txt
echo mine > mine.txt; chmod 600 mine.txt; mkdir -p build; echo out > build/out; echo secret > secret.log
`

// listFiles returns the types, permissions and contents of the files below a folder for which keep
// is true; nil means all, with the folders. Of files that are too large for a snapshot it lists the size.
func listFiles(t testing.TB, dir string, keep func(name string) bool) string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, dir+"/")
		if err != nil || path == dir || keep != nil && (entry.IsDir() || !keep(name)) {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().Type() == fs.ModeSymlink:
			content, err = os.Readlink(path)
		case info.Size() > 100<<20:
			content = fmt.Sprint(info.Size())
		case info.Mode().IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			content = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		list = append(list, fmt.Sprintf("%q %s %s", name, info.Mode(), content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, "\n")
}

func inGit(name string) bool { return strings.HasPrefix(name, ".git/") }
func files(name string) bool { return !inGit(name) }
func notIgnored(name string) bool {
	return files(name) && !strings.HasPrefix(name, "build/") && !strings.HasSuffix(name, ".log")
}
func notLib(name string) bool { return files(name) && !strings.HasPrefix(name, "lib/") }

// seeded is a folder with a repository made by seed. It is removed by TestMain.
var seeded = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "undo-test-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("bash", "-ec", seed)
	cmd.Dir, cmd.Env = dir, gitEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// repository makes the repository of seed in a new folder, and changes it with a script.
func repository(t testing.TB, more string) (dir string) {
	t.Helper()
	base := t.TempDir()
	from, err := seeded()
	if err != nil {
		t.Fatal(err)
	}
	sh(t, base, "cp -a "+from+" repo; chmod 755 repo; cd repo; git update-index -q --refresh || :; umask 022; "+more)
	return filepath.Join(base, "repo")
}

// start makes a repository, and takes a snapshot.
func start(t testing.TB, more string) (dir, store string, s *undo.Snapshot) {
	t.Helper()
	dir = repository(t, more)
	store = filepath.Join(filepath.Dir(dir), "store")
	var err error
	before := listFiles(t, dir, nil)
	if s, err = undo.TakeSnapshot(t.Context(), dir, store); err != nil {
		t.Fatal(err)
	}
	if after := listFiles(t, dir, nil); after != before {
		t.Fatalf("it left a trace:\n%s", changedLines(before, after))
	}
	return dir, store, s
}

// changedLines returns the lines that are in only one of two texts.
func changedLines(a, b string) string {
	var out []string
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for _, l := range as {
		if !slices.Contains(bs, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range bs {
		if !slices.Contains(as, l) {
			out = append(out, "+ "+l)
		}
	}
	return strings.Join(out, "\n")
}

// The diff shows exactly the changes, and Restore undoes them.
func TestDiffAndRestore(t *testing.T) {
	tests := []struct {
		name         string
		seed, change []string               // lines of a script
		files        func(name string) bool // the files that must be as before; nil for all
		summary      string
		in, out      []string
	}{
		{
			name:    "nothing, touched only and ignored",
			change:  []string{"touch a.txt mine.txt code.py", "echo x >> secret.log; echo x >> build/out; echo x > new.log"},
			files:   notIgnored,
			summary: "no changes",
		},
		{
			name: "files",
			seed: []string{
				"ln -s a.txt gone-link; mkdir gone pdir; seq 4 > gone/f; echo p > place; echo p > pdir/f; mkdir dir; echo d > dir/d",
				"git add gone-link gone pdir place dir; git commit -qm more -- gone-link gone pdir place dir",
				"mkdir u; for i in $(seq 60); do echo $i > u/$i; done",
				"echo 1 > strict; chmod 400 strict; echo 1 > lax; chmod 777 lax; ln -s a.txt untracked-link",
			},
			change: []string{
				"echo agent >> a.txt; echo x >> mine.txt",
				"rm gone-link untracked-link; rm -r gone",
				"mkdir -p new/deep; echo x > new/deep/x; touch empty",
				"for i in $(seq 60); do echo x >> u/$i; done; rm u/7; mkdir v; for i in $(seq 40); do echo v $i > v/$i; done",
				"git mv many/3 many/three; mv many many2",
				"head -c 50 /dev/zero >> blob; head -c 50 /dev/zero > new.bin",
				"chmod -x code.py; chmod +x crlf.txt",
				"ln -sf code.py link; ln -s nowhere dangling; rm -r sub; ln -s /tmp sub",
				"rm place; mkdir -p place/d; echo i > place/d/e; rm -r pdir; echo f > pdir; rm -r dir; ln -s /etc dir",
				"rm -f strict lax; echo x > lax",
			},
			summary: "131 files changed, 109 insertions, 15 deletions",
			in: []string{
				" more\n+agent", " mine\n+x", "deleted file mode 120000", "b/new/deep/x", "b/empty", "\n-7\n", "rename from many/1", "rename to many2/three",
				"Binary files a/blob and b/blob differ", "b/new.bin", "old mode 100755", "new mode 100755", "+code.py", "new file mode 120000", "b/place/d/e", "b/pdir",
			},
			out: []string{"+more", "+staged", "GIT binary", "passwd", "secret"},
		},
		{
			name:   "odd names",
			seed:   []string{`printf 1 > $'line\nend'; printf 1 > $'\xff\xfe'; printf 1 > ' sp "q" \\ '; printf 1 > '*'; printf 1 > ':(top)x'; printf 1 > -- -r`},
			change: []string{`for f in *; do [ "$f" = secret.log ] || [ -d "$f" ] || [ -h "$f" ] || printf 2 >> "./$f"; done; printf n > $'new\x1b[2J'; rm -- '*'`},
			in:     []string{`line\nend`, `new\033[2J`},
			out:    []string{"\x1b"},
		},
		{
			name: "line ends, filters and ident",
			seed: []string{
				`printf 'w\r\nx\r\n' > w.txt; printf 'w\r\nx\r\n' > lf.auto; echo loud > x.up; echo loud > x.down; echo '$Id$' > x.id`,
				`git config core.autocrlf true; git config filter.up.clean "tr a-z A-Z"; git config filter.up.smudge "tr A-Z a-z"; git config filter.down.clean "tr a-z A-Z"; git config filter.down.smudge false`,
				`printf '*.auto text=auto\n*.up filter=up\n*.down filter=down\n*.id ident\n' > .gitattributes`,
				`git add w.txt lf.auto x.up x.down x.id .gitattributes; git commit -qm more -- w.txt lf.auto x.up x.down x.id .gitattributes; rm x.id; git checkout -q x.id`,
			},
			change:  []string{`printf 'y\r\n' >> w.txt; printf 'z\n' > crlf.txt; sed -i 's/\r//' lf.auto; echo more >> x.up; rm x.down x.id`},
			summary: "6 files changed, 5 insertions, 6 deletions",
			in:      []string{" w\r", "+y\r", "-exact\r", "-w\r", "+w\n", " loud\n+more", "-loud", "-$Id: "},
			out:     []string{"MORE"},
		},
		{
			name: "the index",
			seed: []string{
				"git update-index --assume-unchanged code.py; git update-index --skip-worktree crlf.txt; echo n > n.txt; git add -N n.txt",
				"git update-index --split-index; git config core.fsmonitor true; git config core.untrackedCache true; git status -s",
			},
			change: []string{
				"git update-index --assume-unchanged sub/latin.txt; git update-index --skip-worktree blob many/1",
				"for f in code.py crlf.txt n.txt sub/latin.txt blob many/1; do echo x >> $f; done",
				"touch -d @1000000000 many/2; sed -i 's/100/101/' many/2; touch -d @1000000000 many/2",
			},
			summary: "7 files changed, 6 insertions, 1 deletion",
			in:      []string{" x = 1\n+x", " lines\r\n+x", " n\n+x", " un\n+x", "Binary files a/blob", " 100\n+x", "-100\n+101"},
		},
		{
			name:    "commits, rules for ignoring changed",
			change:  []string{"echo c >> code.py; git add -A; git commit -qm agent; echo d >> code.py; echo > .gitignore; echo '*.txt' >> .git/info/exclude; echo x > new.py"},
			summary: "3 files changed, 4 insertions, 2 deletions",
			in:      []string{"+c", "+d", "b/new.py", "-*.log"},
			out:     []string{"+mine", "secret", "b/build"},
		},
		{
			name:    "reset, and the user's changes lost",
			change:  []string{"git reset -q --hard; git clean -qfd"},
			summary: "2 files changed, 3 deletions",
			in:      []string{"-more", "-staged", "-mine"},
		},
		{
			name:    "stashed, on another branch",
			seed:    []string{"git stash -qu; git switch -qc other; echo o > o.txt; git add o.txt; git commit -qm o; git switch -q main; git stash pop -q"},
			change:  []string{"git stash -qu; git switch -q other"},
			summary: "3 files changed, 1 insertion, 3 deletions",
			in:      []string{"b/o.txt", "-staged", "-mine"},
		},
		{
			name:    "a conflict",
			seed:    []string{"git switch -qc other HEAD; git commit -qam o; git switch -qc third HEAD~1; seq 3 > a.txt; git commit -qam t; git merge other || :"},
			change:  []string{"echo x >> a.txt"},
			summary: "1 file changed, 1 insertion",
			in:      []string{"+x", " >>>>>>>"},
		},
		{
			name:    "no commit yet",
			seed:    []string{"rm -rf .git; git init -q .; git add a.txt"},
			change:  []string{"echo x >> a.txt; echo y >> code.py; rm mine.txt"},
			summary: "3 files changed",
			in:      []string{"+x", "+y", "-mine"},
		},
		{
			name:    "a sparse checkout",
			seed:    []string{"git add -A; git commit -qm x; git sparse-checkout set --cone sub; git sparse-checkout reapply --sparse-index"},
			change:  []string{"echo x >> sub/latin.txt; echo y > new.txt"},
			summary: "2 files changed, 2 insertions",
			in:      []string{"+x"},
			out:     []string{"many"},
		},
		{
			name: "a submodule and a linked work tree",
			seed: []string{
				"git init -q ../lib; (cd ../lib; echo l > l; git add l; git commit -qm l); git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm m",
				"git worktree add -q ../linked; (cd ../linked; echo own >> a.txt)",
			},
			change:  []string{"echo x >> lib/l; (cd lib; git commit -qam x); echo y >> code.py"},
			files:   notLib,
			summary: "1 file changed, 1 insertion",
			in:      []string{"+y"},
			out:     []string{"lib"},
		},
		{
			name:    "the repository is gone",
			change:  []string{"rm -rf .git; echo x >> code.py; rm a.txt"},
			summary: "2 files changed, 1 insertion, 5 deletions",
			in:      []string{"-one", "+x"},
		},
		{
			name:    "objects are gone",
			change:  []string{"git checkout -q --orphan o; git add -A; git commit -qm o; git branch -qD main; git reflog expire --expire=now --all; git gc -q --prune=now; rm code.py"},
			summary: "1 file changed",
			in:      []string{"-x = 1"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, store, s := start(t, strings.Join(tt.seed, "\n"))
			keep := tt.files
			if keep == nil {
				keep = files
			}
			checkRestore(t, dir, store, s, keep, strings.Join(tt.change, "\n"), tt.summary, tt.in, tt.out)
		})
	}
}

func checkRestore(t *testing.T, dir, store string, s *undo.Snapshot, files func(string) bool, change, summary string, in, out []string) {
	t.Helper()
	before := listFiles(t, dir, files)
	sh(t, dir, change)
	repository := listFiles(t, dir, inGit)
	d, err := s.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := cmp.Or(d.Summary, "no changes"); !strings.HasPrefix(got, summary) {
		t.Errorf("the summary is %q, not %q", got, summary)
	}
	for _, want := range in {
		if !strings.Contains(string(d.Patch), want) {
			t.Errorf("no %q in\n%s", want, d.Patch)
		}
	}
	for _, not := range out {
		if strings.Contains(string(d.Patch), not) {
			t.Errorf("%q is in\n%s", not, d.Patch)
		}
	}
	// OpenSnapshot works, too.
	if s, err = undo.OpenSnapshot(store); err != nil {
		t.Fatal(err)
	}
	done, err := s.Restore(t.Context(), d.TreeID)
	if err != nil || len(done.Skipped) > 0 {
		t.Errorf("%v, %+v", err, done)
	}
	if after := listFiles(t, dir, files); after != before {
		t.Errorf("not as it was:\n%s", changedLines(before, after))
	}
	if after := listFiles(t, dir, inGit); after != repository {
		t.Errorf("the repository was changed:\n%s", changedLines(repository, after))
	}
	if d, err = s.Diff(t.Context()); err != nil || d.Summary != "" || len(d.Patch) > 0 {
		t.Errorf("%v, %s", err, d.Patch)
	}
}

// A file whose object is missing cannot be restored and is left alone.
func TestMissingObjects(t *testing.T) {
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	sh(t, dir, seed)
	s, err := undo.TakeSnapshot(t.Context(), dir, store)
	if err != nil {
		t.Fatal(err)
	}
	object := strings.TrimSpace(sh(t, dir, "git rev-parse HEAD:crlf.txt"))
	sh(t, dir, "echo theirs > crlf.txt; echo 2 >> code.py")
	d, err := s.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, fmt.Sprintf("find .git %s -path '*/%s/%s' -exec rm -f {} +", store, object[:2], object[2:]))
	done, err := s.Restore(t.Context(), d.TreeID)
	if err == nil || !strings.Contains(err.Error(), "restore crlf.txt: its object is missing") {
		t.Errorf("the error is %v", err)
	}
	if text := sh(t, dir, "cat crlf.txt"); text != "theirs\n" || !slices.Equal(done.Restored, []string{"code.py"}) {
		t.Errorf("crlf.txt holds %q; %+v", text, done)
	}
}

func TestNoRepository(t *testing.T) {
	bare, elsewhere := t.TempDir(), t.TempDir()
	sh(t, bare, "git init -q --bare .")
	sh(t, elsewhere, "mkdir .git2; git init -q r; cd r; git config core.worktree "+t.TempDir())
	for name, dir := range map[string]string{
		"a bare repository": bare, "within .git": filepath.Join(elsewhere, "r/.git"),
		"files elsewhere": filepath.Join(elsewhere, "r"),
	} {
		store := filepath.Join(t.TempDir(), "store")
		if _, err := undo.TakeSnapshot(t.Context(), dir, store); !errors.Is(err, undo.ErrNoRepository) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if _, err := undo.OpenSnapshot(t.TempDir()); err == nil {
		t.Error("an empty folder is no snapshot")
	}
}

func TestGitNotFound(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := undo.TakeSnapshot(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "store")); !errors.Is(err, undo.ErrGitNotFound) {
		t.Errorf("the error is %v", err)
	}
}

// Other processes of the user can read git's environment.
func TestGitGetsNoSecrets(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	sh(t, bin, fmt.Sprintf("printf '#!/bin/sh\\nenv >> %s\\nexec %s \"$@\"\\n' > git; chmod +x git", seen, git))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("UNDO_TEST_TOKEN", "by-its-name")
	t.Setenv("UNDO_TEST_HIDDEN", "by-the-caller")
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	sh(t, dir, seed)
	if err := os.Remove(seen); err != nil {
		t.Fatal(err)
	}
	s, err := undo.TakeSnapshot(t.Context(), dir, store, "UNDO_TEST_HIDDEN")
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "echo more > more")
	if err := os.Remove(seen); err != nil {
		t.Fatal(err)
	}
	d, err := s.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Restore(t.Context(), d.TreeID); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(seen)
	if err != nil || !strings.Contains(string(text), "GIT_ALLOW_PROTOCOL=none") || strings.Contains(string(text), "by-") {
		t.Errorf("git has a secret, or was not run: %v", err)
	}
}

// No program named by the repository is run.
func TestHostileRepository(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(t.TempDir(), "evil")
	sh(t, "/", fmt.Sprintf("printf '#!/bin/sh\\necho \"$0 $*\" >> %s\\ncat\\n' > %s; chmod +x %s", ran, evil, evil))
	set := fmt.Sprintf(`E=%s; printf '* filter=evil diff=evil merge=evil\n' > .gitattributes
for c in core.fsmonitor core.editor core.pager core.sshCommand core.askPass core.gitProxy core.alternateRefsCommand filter.evil.clean filter.evil.smudge filter.evil.process diff.external diff.evil.command diff.evil.textconv merge.evil.driver alias.diff-files gpg.program credential.helper pager.diff-tree uploadpack.packObjectsHook; do git config $c $E; done
git config filter.evil.required true; git config core.hooksPath %s.hooks; mkdir -p %s.hooks; for h in post-index-change pre-commit post-checkout reference-transaction fsmonitor-watchman; do cp $E %s.hooks/$h; cp $E .git/hooks/$h; done
cp $E git`, evil, evil, evil, evil)
	dir, _, s := start(t, set)
	before := listFiles(t, dir, files)
	// The agent may change the settings later.
	sh(t, dir, set+"; echo x > a.txt; rm code.py; echo new > new.txt; printf x >> .gitattributes")
	d, err := s.Diff(t.Context())
	if err != nil || !strings.Contains(string(d.Patch), "-x = 1") {
		t.Errorf("%v\n%s", err, d.Patch)
	}
	if done, err := s.Restore(t.Context(), d.TreeID); err != nil {
		t.Errorf("%v, %+v", err, done)
	}
	if after := listFiles(t, dir, files); after != before {
		t.Errorf("not as it was:\n%s", changedLines(before, after))
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("these ran:\n%s", text)
	}
	sh(t, dir, "touch a.txt; git status || :")
	if _, err := os.Stat(ran); err != nil {
		t.Errorf("nothing would have run: %v", err)
	}
}

// An index that needs a folder's tree makes git ask the remote of a partial clone, which starts
// a program of the repository. Older versions of git do not know GIT_NO_LAZY_FETCH.
func TestPartialClone(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	sh(t, bin, fmt.Sprintf(`printf '#!/bin/sh\nunset GIT_NO_LAZY_FETCH; exec %s "$@"\n' > git; printf '#!/bin/sh\ntouch %s\n' > evil; chmod +x git evil`, git, ran))
	dir := repository(t, `git add -A; git commit -qm x; tree=$(git rev-parse HEAD:sub); git sparse-checkout set --cone none; git sparse-checkout reapply --sparse-index
git config core.repositoryformatversion 1; git config extensions.partialClone origin; git config remote.origin.promisor true
git config remote.origin.url ssh://x/y; git config ssh.variant ssh; git config core.sshCommand `+bin+`/evil; rm -f .git/objects/${tree::2}/${tree:2}`)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, _ = undo.TakeSnapshot(t.Context(), dir, filepath.Join(bin, "store")) // it cannot read the tree
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository ran")
	}
	sh(t, dir, "git ls-files || :")
	if _, err := os.Stat(ran); err != nil {
		t.Errorf("nothing would have run: %v", err)
	}
}

// Changes after the diff was shown are kept.
func TestRestoreSkipsLaterChanges(t *testing.T) {
	dir, _, s := start(t, "")
	sh(t, dir, "echo agent >> a.txt; echo agent >> code.py; echo x > new.txt; git commit -qam agent; git commit -q --allow-empty -m two; git add new.txt")
	d, err := s.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "echo user >> code.py; echo user > user.txt; echo user >> new.txt")
	done, err := s.Restore(t.Context(), d.TreeID)
	if err != nil || !slices.Equal(done.Restored, []string{"a.txt"}) || !slices.Equal(done.Skipped, []string{"code.py", "new.txt", "user.txt"}) {
		t.Errorf("%v, %+v", err, done)
	}
	if got := sh(t, dir, "cat code.py new.txt user.txt; git log --format=%s | head -2"); got != "x = 1\nagent\nuser\nx\nuser\nuser\ntwo\nagent\n" {
		t.Errorf("it is %q", got)
	}
	done, err = s.Restore(t.Context(), "")
	if err != nil || len(done.Skipped) > 0 || len(done.Removed) != 2 {
		t.Errorf("%v, %+v", err, done)
	}
	if d, err = s.Diff(t.Context()); err != nil || d.Summary != "" {
		t.Errorf("%v, %+v", err, d)
	}
}

// Nested repositories, large files and unreadable files are left alone if they existed at the
// start, and shown if they are new.
func TestUnstorableFiles(t *testing.T) {
	dir, _, s := start(t, "git init -q inner; echo i > inner/i; truncate -s 101M large.bin; mkfifo pipe")
	sh(t, dir, "echo x >> inner/i; rm large.bin; echo small > large.bin; truncate -s 101M new.bin; truncate -s 101M code.py; git init -q clone; echo c > clone/c")
	d, err := s.Diff(t.Context())
	if err != nil || d.Summary != "2 files changed, 2 insertions, 1 deletion" || !strings.Contains(string(d.Patch), "too large, or cannot be read") {
		t.Fatalf("%v, %s\n%s", err, d.Summary, d.Patch)
	}
	done, err := s.Restore(t.Context(), d.TreeID)
	if err != nil || !slices.Equal(done.Restored, []string{"code.py"}) || !slices.Equal(done.Removed, []string{"new.bin"}) {
		t.Errorf("%v, %+v", err, done)
	}
	if got := sh(t, dir, "cat large.bin inner/i clone/c code.py; ls new.bin 2>&1 || :"); !strings.HasPrefix(got, "small\ni\nx\nc\nx = 1\nls: ") {
		t.Errorf("it is %q", got)
	}
}

// A long diff is truncated, but all its lines are counted.
func TestLongDiff(t *testing.T) {
	dir, _, s := start(t, "")
	sh(t, dir, "seq 700000 > long.txt; seq 100 > short.txt")
	d, err := s.Diff(t.Context())
	if err != nil || len(d.Patch) < 4<<20-100 || len(d.Patch) > 4<<20 || d.Summary != "2 files changed, 700100 insertions" {
		t.Errorf("%v, %d bytes, %s", err, len(d.Patch), d.Summary)
	}
}

// A second Restore completes one that was killed, whatever git had written.
func TestKilledInRestore(t *testing.T) {
	if at := os.Getenv("UNDO_STORE"); at != "" {
		s, err := undo.OpenSnapshot(at)
		if err == nil {
			_, err = s.Restore(t.Context(), "")
		}
		t.Fatalf("it was not killed: %v", err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	// This git writes only the first files, says so, and waits.
	bin := t.TempDir()
	stopping := fmt.Sprintf("#!/bin/bash\ncase \" $* \" in *' cat-file --batch '*)\n\thead -n \"$UNDO_STOP_AFTER\" | %[1]s \"$@\"\n\techo stopped >&3; read -ru 4; exit 1\nesac\nexec %[1]s \"$@\"\n", git)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(stopping), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, store, _ := start(t, "mkdir big; for i in $(seq 20); do seq $i 100 > big/$i; done; echo '.*' >> .gitignore")
	before := listFiles(t, dir, files)
	for _, written := range []string{"0", "9", "100"} {
		sh(t, dir, "rm -r big sub; mkdir -p sub new; for i in $(seq 20); do echo x > new/$i; done; echo x > a.txt")
		stopped, said, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		wait, end, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestKilledInRestore$")
		cmd.Env = append(os.Environ(), "UNDO_STORE="+store, "UNDO_STOP_AFTER="+written, "PATH="+bin+":"+os.Getenv("PATH"))
		cmd.ExtraFiles = []*os.File{said, wait} // git inherits them
		if err := errors.Join(cmd.Start(), said.Close(), wait.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := stopped.Read(make([]byte, 1)); err != nil {
			t.Errorf("git was not run: %v", err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed
		_ = end.Close()
		if _, err := io.Copy(io.Discard, stopped); err != nil { // wait for git, which the kill spares
			t.Error(err)
		}
		_ = stopped.Close() // only read
		left, err := os.ReadDir(filepath.Join(dir, "big"))
		if want := map[string]int{"0": 0, "9": 8, "100": 20}[written]; len(left) > want {
			t.Errorf("%d files were written, %d at most can be; %v", len(left), want, err)
		}
		s, err := undo.OpenSnapshot(store)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := s.Restore(t.Context(), ""); err != nil {
			t.Fatalf("%v, %+v", err, done)
		}
		if after := listFiles(t, dir, files); after != before {
			t.Fatalf("after %s files, not as it was:\n%s", written, changedLines(before, after))
		}
	}
}

// A folder that became a link is restored, and a pipe where git expects a file stops
// nothing.
func TestLinksAndPipes(t *testing.T) {
	for name, tt := range map[string]struct{ change, want string }{
		"a folder became a link to another": {"rm -r sub; mkdir other; echo y > other/new.txt; ln -s other sub", "sub"},
		"a link out of the tree":            {"rm -r sub; ln -s /etc sub; echo x >> a.txt", "sub"},
		"a folder above became a link":      {"mkdir -p d/e; mv sub d/e/; ln -s d/e/sub sub", "sub"},
		"a pipe to ignore":                  {"rm -f .git/info/exclude; mkfifo .git/info/exclude; echo x >> a.txt", "a.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, store, s := start(t, "true")
			before := listFiles(t, dir, files)
			sh(t, dir, tt.change)
			d, err := s.Diff(t.Context())
			if err != nil || !strings.Contains(string(d.Patch), tt.want) {
				t.Fatalf("%v\n%s", err, d.Patch)
			}
			if done, err := s.Restore(t.Context(), d.TreeID); err != nil {
				t.Errorf("%v, %+v", err, done)
			}
			if after := listFiles(t, dir, files); after != before {
				t.Errorf("not as it was:\n%s", changedLines(before, after))
			}
			_ = store
		})
	}
	dir, _, _ := start(t, "true")
	sh(t, dir, "mkfifo sub/.gitignore")
	if _, err := undo.TakeSnapshot(t.Context(), dir, filepath.Join(t.TempDir(), "store")); err == nil || !strings.Contains(err.Error(), "sub/.gitignore is a pipe") {
		t.Errorf("the error is %v", err)
	}
}

// While files are restored, a process swaps their folder for a link that leads out of the
// tree: nothing is written there.
func TestRestoreStaysInTheTree(t *testing.T) {
	dir, _, s := start(t, "mkdir big; for i in $(seq 300); do echo $i > big/$i; done")
	outside := t.TempDir()
	sh(t, dir, "for i in $(seq 300); do echo changed > big/$i; done")
	ctx, cancel := context.WithCancel(t.Context())
	swapper := exec.CommandContext(ctx, "bash", "-c", `while :; do mv -T big kept 2>/dev/null; ln -sfn "$0" big; rm -f big; mv -T kept big 2>/dev/null; done`, outside)
	swapper.Dir = dir
	if err := swapper.Start(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, _ = s.Restore(t.Context(), "") // it may fail, because files change meanwhile
	}
	cancel()
	_ = swapper.Wait() // killed
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("%d files were written outside, %v", len(left), err)
	}
	sh(t, dir, "rm -rf big kept")
	if done, err := s.Restore(t.Context(), ""); err != nil {
		t.Errorf("%v, %+v", err, done)
	}
}
