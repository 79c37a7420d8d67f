package undo_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/worktree/undo"
)

// sh runs a script in a folder.
func sh(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/nonexistent/global", "GIT_CONFIG_SYSTEM=/nonexistent/system",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
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

// listFiles returns the types, permissions and contents of all files below a folder.
func listFiles(t testing.TB, dir, which string) string {
	t.Helper()
	return sh(t, dir, `{ find . -mindepth 1 `+which+` -printf '%y %m %p %l\n'
	find . -mindepth 1 `+which+` -type f -print0 | xargs -0r sha256sum; } | LC_ALL=C sort`)
}

const (
	files  = "-path ./.git -prune -o -type d -o"
	dotGit = "! -path './.git' ! -path './.git/*' -prune -o -type d -o"
)

func start(t testing.TB, seed string) (dir, store string, s *undo.Snapshot) {
	t.Helper()
	base := t.TempDir()
	dir, store = filepath.Join(base, "repo"), filepath.Join(base, "store")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, seed)
	before := listFiles(t, dir, "")
	s, err := undo.TakeSnapshot(t.Context(), dir, store)
	if err != nil {
		t.Fatal(err)
	}
	if after := listFiles(t, dir, ""); after != before {
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
		name, seed, change string
		summary            string
		in, out            []string
	}{
		{"nothing", "", ":", "no changes", nil, nil},
		{"touched only", "", "touch a.txt mine.txt code.py", "no changes", nil, nil},
		{"one line", "", "echo agent >> a.txt", "1 file changed, 1 insertion", []string{"+agent", " more"}, []string{"+more", "+staged"}},
		{"the user's untracked file", "", "echo x >> mine.txt", "1 file changed, 1 insertion", []string{"+x", " mine"}, nil},
		{"deleted", "", "rm a.txt mine.txt link; rm -r sub", "4 files changed, 9 deletions", []string{"deleted file mode 120000", "-more", "-mine"}, nil},
		{"new", "", "mkdir -p new/deep; echo x > new/deep/x; touch empty", "2 files changed, 1 insertion", []string{"b/new/deep/x", "b/empty"}, nil},
		{"very many new ones", "mkdir u; for i in $(seq 300); do echo $i > u/$i; done", "for i in $(seq 300); do echo x >> u/$i; done; rm u/7; mkdir v; for i in $(seq 200); do echo v $i > v/$i; done", "500 files changed, 499 insertions, 1 deletion", []string{"-7", "+x"}, nil},
		{"renamed", "", "git mv many/3 many/three; mv many many2", "8 files changed", []string{"rename from many/1", "rename to many2/three"}, []string{"@@"}},
		{"binary", "", "head -c 50 /dev/zero >> blob; head -c 50 /dev/zero > new.bin", "2 files changed", []string{"Binary files a/blob and b/blob differ", "new.bin"}, []string{"GIT binary"}},
		{"modes", "", "chmod -x code.py; chmod +x a.txt", "2 files changed", []string{"old mode 100755", "new mode 100755"}, nil},
		{"links", "", "ln -sf code.py link; rm a.txt; ln -s /etc a.txt; ln -s nowhere dangling", "3 files changed", []string{"+code.py", "new file mode 120000", "/etc"}, []string{"passwd"}},
		{"a folder becomes a link", "", "rm -r sub; ln -s /tmp sub", "2 files changed", []string{"120000"}, nil},
		{"files and folders change places", "", "rm a.txt code.py; mkdir a.txt; echo i > a.txt/i; rm -r sub; echo f > sub; mkdir -p code.py/d; echo x > code.py/d/e", "6 files changed", []string{"b/a.txt/i", "b/sub"}, nil},
		{"odd names", `printf 1 > $'line\nend'; printf 1 > $'\xff\xfe'; printf 1 > ' sp "q" \\ '; printf 1 > '*'; printf 1 > ':(top)x'; printf 1 > -- -r`, `for f in *; do [ "$f" = secret.log ] || [ -d "$f" ] || [ -h "$f" ] || printf 2 >> "./$f"; done; printf n > $'new\x1b[2J'; rm -- '*'`, "", []string{`line\nend`, `new\033[2J`}, []string{"\x1b"}},
		{"CRLF, converted by git", "git config core.autocrlf true; printf 'w\\r\\nx\\r\\n' > w.txt; git add w.txt; git commit -qm w", `printf 'y\r\n' >> w.txt; printf 'z\n' > crlf.txt`, "2 files changed, 2 insertions, 2 deletions", []string{"+y\r", "-exact\r", " w\r"}, nil},
		{"CRLF, changed to LF", "printf '* text=auto\\n' > .gitattributes; printf 'w\\r\\nx\\r\\n' > w.txt; git add .; git commit -qm w", `sed -i 's/\r//' w.txt`, "1 file changed, 2 insertions, 2 deletions", []string{"-w\r", "+w\n"}, nil},
		{"a filter of the user's", `git config filter.up.clean "tr a-z A-Z"; git config filter.up.smudge "tr A-Z a-z"; printf '*.up filter=up\n' > .gitattributes; echo loud > x.up; git add .; git commit -qm up`, "echo more >> x.up", "1 file changed, 1 insertion", []string{" loud", "+more"}, []string{"MORE"}},
		{"a filter's file deleted", `git config filter.up.clean "tr a-z A-Z"; git config filter.up.smudge false; printf '*.up filter=up\n' > .gitattributes; echo loud > x.up; git add .; git commit -qm up`, "rm x.up", "1 file changed, 1 deletion", []string{"-loud"}, nil},
		{"ident", `printf '*.id ident\n' > .gitattributes; echo '$Id$' > x.id; git add .; git commit -qm id; rm x.id; git checkout -q x.id`, "rm x.id", "1 file changed, 1 deletion", []string{"-$Id: "}, nil},
		{"staged and committed", "", "echo c >> code.py; git add -A; git commit -qm agent; echo d >> code.py", "1 file changed, 2 insertions", []string{"+c", "+d"}, []string{"+mine"}},
		{"reset, and the user's changes lost", "", "git reset -q --hard; git clean -qfd", "2 files changed, 3 deletions", []string{"-more", "-staged", "-mine"}, nil},
		{"stashed", "", "git stash -qu", "2 files changed, 3 deletions", []string{"-more", "-mine"}, nil},
		{"another branch", "git stash -q; git switch -qc other; echo o > o.txt; git add o.txt; git commit -qm o; git switch -q main; git stash pop -q", "git stash -q; git switch -q other", "2 files changed", []string{"b/o.txt", "-staged"}, nil},
		{"rules for ignoring changed", "", "echo > .gitignore; echo '*.txt' >> .git/info/exclude; echo x > new.py", "2 files changed", []string{"b/new.py", "-*.log"}, []string{"secret", "b/build"}},
		{"ignored files", "", "echo x >> secret.log; echo x >> build/out; echo x > new.log", "no changes", nil, []string{"log"}},
		{"a conflict", "git switch -qc other HEAD; git commit -qam o; git switch -qc third HEAD~1; seq 3 > a.txt; git commit -qam t; git merge other || :", "echo x >> a.txt", "1 file changed, 1 insertion", []string{"+x", " >>>>>>>"}, nil},
		{"added with -N", "echo n > n.txt; git add -N n.txt", "echo m >> n.txt", "1 file changed, 1 insertion", []string{"+m", " n"}, nil},
		{"hidden by bits of the index", "", "git update-index --assume-unchanged code.py; git update-index --skip-worktree blob; echo x >> code.py; echo y >> blob", "2 files changed", []string{"+x"}, nil},
		{"hidden by bits before", "git update-index --assume-unchanged code.py; git update-index --skip-worktree crlf.txt", "echo x >> code.py; echo y >> crlf.txt", "2 files changed, 2 insertions", []string{"+x", "+y"}, nil},
		{"a split index, fsmonitor", "git update-index --split-index; git config core.fsmonitor true; git config core.untrackedCache true; git status -s", "echo x >> code.py", "1 file changed, 1 insertion", []string{"+x"}, nil},
		{"no commit yet", "rm -rf .git; git init -q .; git add a.txt", "echo x >> a.txt; echo y >> code.py; rm mine.txt", "3 files changed", []string{"+x", "+y", "-mine"}, nil},
		{"changed in the second of the index", "", "touch -d @1000000000 code.py; echo 'x = 2' > code.py; touch -d @1000000000 code.py", "1 file changed, 1 insertion, 1 deletion", []string{"+x = 2"}, nil},
		{"permissions", "chmod 400 code.py; chmod 777 crlf.txt", "chmod 644 code.py; rm -f code.py crlf.txt; echo x > crlf.txt", "2 files changed", nil, nil},
		{"a sparse checkout", "git add -A; git commit -qm x; git sparse-checkout set --cone sub; git sparse-checkout reapply --sparse-index", "echo x >> sub/latin.txt; echo y > new.txt", "2 files changed, 2 insertions", []string{"+x"}, []string{"many"}},
		{"a submodule", `git init -q ../lib; (cd ../lib; echo l > l; git add l; git commit -qm l); git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm m`, "echo x >> lib/l; (cd lib; git commit -qam x); echo y >> code.py", "1 file changed, 1 insertion", []string{"+y"}, []string{"lib"}},
		{"a linked work tree", "git stash -qu; git worktree add -q ../linked; cd ../linked; echo own >> a.txt; cd ../repo; rm -rf .git.old; git stash pop -q", "echo x >> a.txt", "1 file changed, 1 insertion", []string{"+x"}, nil},
		{"the repository is gone", "", "rm -rf .git; echo x >> code.py; rm a.txt", "2 files changed, 1 insertion, 5 deletions", []string{"-one", "+x"}, nil},
		{"objects are gone", "", "git checkout -q --orphan o; git add -A; git commit -qm o; git branch -qD main; git reflog expire --expire=now --all; git gc -q --prune=now; rm code.py", "1 file changed", []string{"-x = 1"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, store, s := start(t, seed+tt.seed)
			if tt.name == "a submodule" {
				// Ignored files stay.
				files := "-path ./lib -prune -o -path ./.git -prune -o -type d -o"
				checkRestore(t, dir, store, s, files, tt.change, tt.summary, tt.in, tt.out)
				return
			}
			if tt.name == "ignored files" {
				files := `-path ./build -prune -o -name '*.log' -prune -o -path ./.git -prune -o -type d -o`
				checkRestore(t, dir, store, s, files, tt.change, tt.summary, tt.in, tt.out)
				return
			}
			checkRestore(t, dir, store, s, files, tt.change, tt.summary, tt.in, tt.out)
		})
	}
}

func checkRestore(t *testing.T, dir, store string, s *undo.Snapshot, files, change, summary string, in, out []string) {
	t.Helper()
	before := listFiles(t, dir, files)
	sh(t, dir, change)
	repository := listFiles(t, dir, dotGit)
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
	if after := listFiles(t, dir, dotGit); after != repository {
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
	plain, bare, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	sh(t, bare, "git init -q --bare .")
	sh(t, elsewhere, "mkdir .git2; git init -q r; cd r; git config core.worktree "+plain)
	for name, dir := range map[string]string{
		"a plain folder": plain, "a bare repository": bare, "within .git": filepath.Join(elsewhere, "r/.git"),
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
	if err != nil || !strings.Contains(string(text), "GIT_PAGER=cat") || strings.Contains(string(text), "by-") {
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
	dir, _, s := start(t, seed+set)
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

// Changes after the diff was shown are kept.
func TestRestoreSkipsLaterChanges(t *testing.T) {
	dir, _, s := start(t, seed)
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
	dir, _, s := start(t, seed+"git init -q inner; echo i > inner/i; truncate -s 200M large.bin; mkfifo pipe")
	sh(t, dir, "echo x >> inner/i; rm large.bin; echo small > large.bin; truncate -s 300M new.bin; truncate -s 300M code.py; git init -q clone; echo c > clone/c")
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
	dir, _, s := start(t, seed)
	sh(t, dir, "seq 2000000 > long.txt; seq 100 > short.txt")
	d, err := s.Diff(t.Context())
	if err != nil || len(d.Patch) < 4<<20-100 || len(d.Patch) > 4<<20 || d.Summary != "2 files changed, 2000100 insertions" {
		t.Errorf("%v, %d bytes, %s", err, len(d.Patch), d.Summary)
	}
}

// A second Restore completes one that was killed at any point.
func TestKilledInRestore(t *testing.T) {
	if at := os.Getenv("UNDO_STORE"); at != "" {
		s, err := undo.OpenSnapshot(at)
		if err == nil {
			_, err = s.Restore(t.Context(), "")
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	const all = seed + "mkdir big; for i in $(seq 300); do seq $i 3000 > big/$i; done; echo '.*' >> .gitignore"
	dir, store, _ := start(t, all)
	before := listFiles(t, dir, files)
	killed := 0
	for i := range 8 {
		sh(t, dir, "rm -r big sub; mkdir -p sub new; for i in $(seq 300); do echo x > new/$i; done; echo x > a.txt")
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestKilledInRestore$")
		cmd.Env = append(os.Environ(), "UNDO_STORE="+store)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{w} // the git process that it starts inherits it
		if err := errors.Join(cmd.Start(), w.Close()); err != nil {
			t.Fatal(err)
		}
		// Kills it after a number of steps.
		for {
			names, err := os.ReadDir(filepath.Join(dir, "big"))
			if err == nil && len(names) > i*37 {
				break
			}
			if left, _ := os.ReadDir(filepath.Join(dir, "big")); len(left) == 300 {
				break
			}
		}
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if cmd.Wait() != nil {
			killed++
		}
		if _, err := io.Copy(io.Discard, r); err != nil { // wait for the git process, which the kill spares
			t.Fatal(err)
		}
		_ = r.Close() // only read
		s, err := undo.OpenSnapshot(store)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := s.Restore(t.Context(), ""); err != nil {
			t.Fatalf("%v, %+v", err, done)
		}
		if after := listFiles(t, dir, files); after != before {
			t.Fatalf("not as it was:\n%s", changedLines(before, after))
		}
	}
	if killed == 0 {
		t.Error("nothing was ever killed in time")
	}
}
