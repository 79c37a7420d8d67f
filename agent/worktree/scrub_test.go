package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// disposable is a sandbox that owns its files.
type disposable struct{ env.Environment }

func (d disposable) Info() env.Info {
	info := d.Environment.Info()
	info.Disposable = true
	return info
}

func scrub(t *testing.T, dir string) (worktree.ScrubReport, error) {
	t.Helper()
	return worktree.Scrub(t.Context(), disposable{sandbox(t, local.Config{Dir: dir})})
}

// disposableIn is a sandbox that owns its folder, for a user with a home folder.
func disposableIn(t *testing.T, dir, home string) env.Environment {
	return disposable{sandbox(t, local.Config{Dir: dir, Env: map[string]string{"HOME": home, "XDG_CONFIG_HOME": home}})}
}

// scrubContained scrubs as in a container, where the sandbox owns every file.
func scrubContained(t *testing.T, dir string) (worktree.ScrubReport, error) {
	t.Helper()
	return worktree.Scrub(t.Context(), disposable{container{sandbox(t, local.Config{Dir: dir})}})
}

const commit = `commit() { echo "$1" > "$1.txt"; git add -A; git commit -qm "$1"; }
`

// story is a repository with history, two later commits after HEAD, and the
// word SECRET in every place that a scrub must clear.
const story = "git init -q -b main .\n" + commit + `
commit one; git tag v1; git tag -a -m 'annotated' v1a
commit two; git tag v2
git checkout -q -b future
commit SECRET-three; git tag v3; git tag -a -m SECRET v3a; git tag -a -m SECRET v3aa v3a
git notes add -m SECRET-note HEAD
git tag blob $(echo SECRET-blob | git hash-object -w --stdin)
git checkout -q main; git branch -q old HEAD~1
`

// status is what a user sees of a repository. Information on the upstream goes
// with the remote.
const status = `git status --porcelain=v2 --branch --ignored | grep -v '^# branch.\(upstream\|ab\)'; git status | sed "s|at origin/main|at $(git rev-parse --short HEAD 2>/dev/null)|" | grep -v 'origin\|git pull\|^$'
git ls-files -s -v; git diff; git diff --cached; git log --oneline --decorate=no; git describe --tags; git symbolic-ref -q HEAD || true`

// misleading are the cases in which HEAD's own history was replaced, so that
// the scrub changes what is visible.
const misleading = "replaced and grafted"

// secrets lists the lines of objects and the files with the word, and a commit
// given by its branch name.
const secrets = `cd "$(git rev-parse --git-common-dir)"
GIT_DIR=. git cat-file --batch-all-objects --batch --buffer | grep -a SECRET | sed 's/^/in an object: /' || true
grep -rlI "SECRET\|^[0-9a-f]\{40\}.refs/heads/future" . || true`

// After the scrub nothing of the future is left in any place, the report is
// clean, and the user sees no difference.
func TestScrub(t *testing.T) {
	tests := []struct{ name, more, method string }{
		{"nothing to do", `git tag -d v3 v3a v3aa blob; git branch -D future old; git update-ref -d refs/notes/commits; rm -rf .git/logs; git prune --expire=now`, "none"},
		{"loose, in every place", `point() { mkdir -p .git/lfs/objects/aa/bb .git/lfs/tmp; sum=$(echo "$1" | sha256sum | cut -d' ' -f1); echo "$1" > .git/lfs/objects/aa/bb/$sum; printf 'version x\noid sha256:%s\nsize 1\n' $sum; }
point SECRET-five >/dev/null; echo SECRET > .git/lfs/tmp/x; point here > p; git add p; git commit -qm p
git checkout -q -b "we/ird.na-me"; git branch -qD main; git update-ref refs/heads/é future; git update-ref refs/pull/1/head future; git symbolic-ref refs/heads/sym refs/heads/future
git worktree add -q ../linked old; (cd ../linked; echo SECRET > four; git add four)
git merge -q --no-commit --no-ff future; git merge --abort; git rev-parse future > .git/ORIG_HEAD; git fetch -q . future; mkdir -p .git/rr-cache/x; echo SECRET > .git/rr-cache/x/preimage
git bundle create -q .git/SECRET.bundle --all; mkdir .git/lost-found; echo SECRET > .git/lost-found/x
echo SECRET > one.txt; git stash -q; echo mine > one.txt
git update-server-info; git pack-refs --all
echo 0123456789012345678901234567890123456789 > .git/refs/heads/broken; echo junk > .git/refs/tags/junk; echo '1123456789012345678901234567890123456789 refs/heads/gone' >> .git/packed-refs; mkdir -p .git/refs/bisect; git rev-parse future > .git/refs/bisect/bad
echo staged > s; git add s; git rm -q --cached two.txt; echo u > u; echo '*.log' > .gitignore; echo l > x.log; git add -N u`, "loose"},
		{"packed, with a pack that is kept", `git repack -adq; for p in .git/objects/pack/*.pack; do touch "${p%.pack}.keep"; done; git multi-pack-index write; git commit-graph write --reachable; git update-server-info`, "repacked"},
		{"a bitmap, cruft and a broken write", `git repack -adbq; git branch -D future; git tag -d v3 v3a v3aa; git repack -q --cruft -d; echo SECRET > .git/objects/pack/tmp_pack_x; mkdir .git/objects/tmp_objdir-x; echo SECRET > .git/objects/tmp_objdir-x/y`, "repacked"},
		{"a clone with a remote", `git clone -q . ../clone; cd ../clone; git branch -q x origin/future; git config remote.pushDefault origin; git config branch.main.description d; git remote add up/stream https://user:SECRET@example.org/x.git; git fetch -q origin; git gc -q`, "repacked"},
		{"detached at a tag", `git checkout -q v1`, "loose"},
		{"detached, with a commit on top, the branch gone", `git checkout -q --detach; commit set-up; git branch -qD main`, "loose"},
		{"objects of another repository, detached at a remote branch", `git clone -qs . ../clone; cd ../clone; git checkout -q origin/main`, "repacked"},
		{"conflicts in the index", `git checkout -q -b other; echo x > one.txt; git commit -qam x; git checkout -q main; echo y > one.txt; git commit -qam y; git merge -q other || true; rm .git/MERGE_*; rm -f .git/AUTO_MERGE`, "loose"},
		{misleading, `git replace HEAD future; git replace --graft main~1 future 2>/dev/null || true; echo "$(git --no-replace-objects rev-parse HEAD) $(git rev-parse future)" > .git/info/grafts`, "loose"},
		{"in a linked work tree", `git worktree add -q ../linked old; git checkout -q future; cd ../linked`, "loose"},
		{"shallow", `git clone -q --depth 1 "file://$PWD" ../clone; cd ../clone; git fetch -q --depth 1 origin future:future`, "loose"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := strings.TrimSpace(sh(t, repository(t, story, ""), commit+tt.more+"\npwd"))
			if i := strings.LastIndexByte(dir, '\n'); i >= 0 {
				dir = dir[i+1:]
			}
			before := sh(t, dir, status)
			scrub := scrub
			if strings.HasPrefix(tt.name, "in a linked") {
				scrub = scrubContained // outside a container the other worktree may be the user's
			}
			report, err := scrub(t, dir)
			require.NoError(t, err)
			if !report.IsClean() || report.Method != tt.method || report.Commits == 0 || report.Head == "" {
				t.Errorf("%+v, want method %q", report, tt.method)
			}
			if after := sh(t, dir, status); before != after && tt.name != misleading {
				t.Errorf("git status changed (-before +after):\n%s", cmp.Diff(before, after))
			}
			assert.Equal(t, "", sh(t, dir, secrets), "the future is still")
			if strings.HasPrefix(tt.name, "loose") {
				sh(t, dir, "test $(cat .git/lfs/objects/aa/bb/*) = here") // HEAD points to it
			}
			// Check independently of the report.
			commits := sh(t, dir, `git cat-file --batch-all-objects --batch-check='%(objecttype) %(objectname)' | sed -n 's/^commit //p' | sort | comm -23 - <(git rev-list HEAD | sort)
git fsck --full --strict 2>&1 | grep -v '^notice' || true; git remote -v; git reflog | grep -v 'checkout: moving from' || true; git stash list; git branch -a --format='%(refname)' | grep -v '(HEAD detached\|(no branch' | grep -vFx "$(git symbolic-ref -q HEAD)" || true; git worktree list | grep -v "$PWD" | grep -v /repo || true`)
			assert.Equal(t, "", commits, "left behind")
			if again, err := scrub(t, dir); err != nil || !again.IsClean() || again.Method != "none" || again.ObjectsRemoved+again.RefsRemoved != 0 {
				t.Errorf("a second time: %v, %+v", err, again)
			}
		})
	}
}

// Scrub changes only files that the sandbox owns.
func TestScrubUsersFolder(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, story)
	const everything = "find .git | sort | xargs -d '\\n' ls -ld --time-style=full-iso; find .git -type f | sort | xargs sha256sum"
	before := sh(t, dir, everything)
	_, err := worktree.Scrub(t.Context(), sandbox(t, local.Config{Dir: dir}))
	assert.ErrorIs(t, err, worktree.ErrNotDisposable)
	if after := sh(t, dir, everything); after != before {
		t.Errorf("the repository was changed:\n%s", cmp.Diff(before, after))
	}
}

func TestScrubSmallRepositories(t *testing.T) {
	for name, tt := range map[string]struct {
		seed string
		err  error
		want worktree.ScrubReport
	}{
		"no repository":       {"true", worktree.ErrNoRepository, worktree.ScrubReport{}},
		"no commit, no file":  {"git init -q .", nil, worktree.ScrubReport{Method: "none"}},
		"no commit, a remote": {"git init -q . && git remote add origin https://example.org/x", nil, worktree.ScrubReport{Method: "none"}},
		"no commit, staged":   {"git init -q . && echo x > x && git add x && git hash-object -w --stdin </dev/null", nil, worktree.ScrubReport{Method: "loose", Objects: 1, ObjectsRemoved: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, tt.seed)
			got, err := scrub(t, dir)
			if !errors.Is(err, tt.err) || !got.IsClean() {
				t.Errorf("%v, %+v", err, got)
			}
			got.Head, got.Duration = "", 0
			assert.Equal(t, tt.want, got, "the result")
		})
	}
}

// A repository that cannot be scrubbed is refused. The run does not retry.
func TestScrubErrors(t *testing.T) {
	for name, tt := range map[string]struct{ seed, want string }{
		"a partial clone without the files of HEAD": {story + "git config uploadpack.allowFilter true; git clone -q --no-checkout --filter=blob:none \"file://$PWD\" here; cd here", "lacks 2 objects of HEAD"},
		"refs in a table":   {story + "git config extensions.refStorage reftable", "stored in a way"},
		"an object is gone": {story + "rm -f .git/objects/$(git rev-parse HEAD~1: | sed 's|^..|&/|')", "bad tree object"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sh(t, dir, tt.seed)
			if _, err := os.Stat(filepath.Join(dir, "here")); err == nil {
				dir = filepath.Join(dir, "here")
			}
			_, err := scrubContained(t, dir)
			assert.ErrorContains(t, err, tt.want)
			if !errors.Is(err, worktree.ErrRefused) && !strings.HasPrefix(name, "an object") {
				t.Errorf("the error is not final: %v", err)
			}
		})
	}
}

// A partial clone that has the files of HEAD is scrubbed, and no longer asks its remote,
// which is a program here.
func TestScrubPartialClone(t *testing.T) {
	for name, more := range map[string]string{
		"without older files": `git config uploadpack.allowFilter true; git clone -q --filter=blob:none "file://$PWD" here`,
		"a marked pack":       `git clone -q . here; git -C here repack -adq; touch $(ls here/.git/objects/pack/*.pack | sed 's/pack$/promisor/')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			sh(t, root, story+"echo changed > one.txt; git commit -qam changed; "+more+"; cd here; git config remote.origin.url 'ext::sh -c touch% '$PWD'/asked'; git config protocol.ext.allow always")
			dir := filepath.Join(root, "here")
			report, err := scrub(t, dir)
			if err != nil || !report.IsClean() || report.Commits != 3 {
				t.Fatalf("%v, %+v", err, report)
			}
			left := sh(t, dir, `git status --porcelain; git log --oneline -1 --format=%s; git cat-file -p HEAD:one.txt; git cat-file -p HEAD~2:one.txt 2>&1 | grep -v '^one$\|^fatal' || true; ls; git config --list | grep -i 'promisor\|partial' || true`)
			assert.Equal(t, "changed\nchanged\none.txt\ntwo.txt\n", left)
		})
	}
}

// Root scrubs another user's repository without changing owners.
func TestScrubKeepsOwnersAndModes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	for _, how := range []string{"git repack -adq; git pack-refs --all", "true"} {
		dir := t.TempDir()
		sh(t, dir, story+"git remote add origin https://example.org/x;"+how+"; chown -R 1234:5678 .; chmod 0755 .")
		const owners = `find .git -printf '%u %g\n' | sort -u; find .git ! -path '*/objects/*' ! -name index -printf '%P %m\n' | sort | grep -v 'refs/.*/\|logs\|packed-refs\|COMMIT_EDITMSG\|refs/[^ht]'`
		before := sh(t, dir, owners)
		report, err := scrubContained(t, dir)
		if err != nil || !report.IsClean() {
			t.Fatalf("%v, %+v", err, report)
		}
		if after := sh(t, dir, owners); before != after {
			t.Errorf("after %q (-before +after):\n%s", how, cmp.Diff(before, after))
		}
	}
}

// container is a sandbox that reports that it is a container.
type container struct{ env.Environment }

func (c container) Info() env.Info {
	info := c.Environment.Info()
	info.Image = "image"
	return info
}

// preparedSandbox is a sandbox of a prepared image.
type preparedSandbox struct {
	env.Environment
	note string
}

func (b preparedSandbox) Info() env.Info {
	info := b.Environment.Info()
	info.Prepared = &env.ImagePreparation{Note: b.note}
	return info
}

// A repository that changed after it was prepared is scrubbed.
func TestScrubPreparedImage(t *testing.T) {
	t.Parallel()
	const elsewhere = `(git init -q ../other; cd ../other; echo SECRET > s; git add s; git -c user.name=a -c user.email=a@b commit -qm SECRET; git gc -q)
`
	root := t.TempDir()
	dir := filepath.Join(root, "repo")
	sh(t, root, "mkdir repo; cd repo\n"+story+"git gc -q")
	sb := disposable{container{sandbox(t, local.Config{Dir: dir})}}
	note, err := worktree.Prepare(t.Context(), sb)
	if err != nil || note == "" {
		t.Fatalf("%q, %v", note, err)
	}
	sh(t, root, "cp -a repo saved")
	for name, tt := range map[string]struct {
		plant string
		holds bool // the preparation is still valid
	}{
		"nothing":                {"true", true},
		"files of the work tree": {"echo SECRET > SECRET; rm one.txt", true},
		"a refreshed index":      {"sleep 0.01; touch one.txt; git status >/dev/null; git update-index --refresh", true},
		"an object":              {"echo SECRET | git hash-object -w --stdin", false},
		"a pack":                 {elsewhere + "cp ../other/.git/objects/pack/* .git/objects/pack/", false},
		"a ref":                  {"git branch SECRET-branch", false},
		"a packed ref":           {`echo "$(git rev-parse HEAD) refs/heads/SECRET" >> .git/packed-refs`, false},
		"an alternate":           {elsewhere + "echo $(cd ../other/.git/objects; pwd) > .git/objects/info/alternates", false},
		"a list of refs":         {`printf '%s\trefs/heads/SECRET\n' $(git rev-parse HEAD) > .git/info/refs`, false},
		"a file of Git LFS":      {"mkdir -p .git/lfs/objects/aa; echo SECRET > .git/lfs/objects/aa/aa", false},
		"a log":                  {"mkdir -p .git/logs; echo SECRET > .git/logs/HEAD", false},
		"a fetched head":         {"echo SECRET > .git/FETCH_HEAD", false},
		"a remote":               {"git remote add SECRET https://example.org", false},
		"what is staged":         {"echo more > more; git add more", false},
		"another HEAD":           {"git checkout -q --detach", false},
		"a replacement":          {elsewhere + "mkdir -p .git/refs/replace; cp ../other/.git/objects/pack/* .git/objects/pack/; git -C ../other rev-parse HEAD > .git/refs/replace/$(git rev-parse HEAD)", false},
	} {
		t.Run(name, func(t *testing.T) {
			sh(t, root, "rm -rf repo other; cp -a saved repo; cd repo; "+tt.plant)
			report, err := worktree.Scrub(t.Context(), preparedSandbox{sb, note})
			if err != nil || !report.IsClean() || report.Head == "" || report.Commits != 2 || report.Prepared != tt.holds {
				t.Errorf("%v, %+v", err, report)
			}
			if found := sh(t, dir, secrets); !tt.holds && found != "" {
				t.Errorf("left behind:\n%s", found)
			}
		})
	}
}

// If there is nothing to prepare, the note is empty. An invalid note is
// ignored.
func TestNothingToPrepare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sb := disposable{container{sandbox(t, local.Config{Dir: dir})}}
	if note, err := worktree.Prepare(t.Context(), sb); note != "" || err != nil {
		t.Errorf("without a repository: %q, %v", note, err)
	}
	sh(t, dir, story+"ln -s /tmp .git/modules")
	if note, err := worktree.Prepare(t.Context(), sb); note != "" || err == nil || !strings.Contains(err.Error(), "links") {
		t.Errorf("with a link: %q, %v", note, err)
	}
	for _, note := range []string{"", "{}", `{"inventory":""}`, "nonsense"} {
		if report, err := worktree.Scrub(t.Context(), preparedSandbox{sb, note}); err != nil || report.Prepared || report.Commits != 2 {
			t.Errorf("with the note %q it was not scrubbed: %v, %+v", note, err, report)
		}
	}
}
