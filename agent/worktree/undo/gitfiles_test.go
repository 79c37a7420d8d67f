package undo_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/worktree/undo"
)

// Changed names the files of git that changed and may name programs, and no others.
func TestGitFiles(t *testing.T) {
	const seed = `git init -q lib && git -C lib commit -q --allow-empty -m x && git init -q other && git -C other commit -q --allow-empty -m x && git add lib other && git commit -qm subs
mkdir .git/modules && mv lib/.git .git/modules/lib && echo gitdir: ../.git/modules/lib > lib/.git
echo a > .git/hooks/pre-commit; echo a > .git/hooks/pre-push; git config include.path more; touch .git/more`
	for _, tt := range []struct{ name, seed, folder, change, want string }{
		{
			name: "ordinary work", seed: seed,
			change: "git add -A; git commit -qm new; git branch b; git checkout -q b; git tag v1; echo x > a.txt; git stash -q; git gc -q; git config -l >/dev/null; touch .git/config",
		},
		{
			name: "everything", seed: seed,
			change: `git config core.fsmonitor evil; echo evil > .git/hooks/post-index-change; chmod +x .git/hooks/pre-commit; rm .git/hooks/pre-push
echo > .git/config.worktree; echo '* filter=lfs' > .git/info/attributes; echo evil > .git/more; mkfifo .git/pipe; mkdir .git/HOOKS; echo evil > .git/HOOKS/post-merge; ln -s ../a.txt .git/link
mkdir .git/rebase-merge; echo exec evil > .git/rebase-merge/git-rebase-todo; echo evil >> .git/modules/lib/config; echo evil >> other/.git/config
git init -q sub; git init -q new; git -C new commit -q --allow-empty -m x; echo ../evil > .git/commondir`,
			want: ".git/HOOKS/post-merge .git/commondir .git/config .git/config.worktree .git/hooks/post-index-change .git/hooks/pre-commit .git/hooks/pre-push " +
				".git/info/attributes .git/link .git/modules/lib/config .git/more .git/pipe .git/rebase-merge/git-rebase-todo " +
				"new/.git other/.git/config sub/.git",
		},
		{name: "pointer of a submodule", seed: seed, change: "echo gitdir: ../new > lib/.git; mv other/.git x; ln -s ../x other/.git", want: "lib/.git other/.git other/.git/config other/.git/info/exclude x"},
		{
			name:   "linked worktree",
			seed:   `mkdir ../main && mv .git ../main/.git && git -C ../main worktree add -q --no-checkout ../linked && mv ../linked/.git .git && git reset -q`,
			change: `D=$(git rev-parse --git-dir); echo evil > $D/config.worktree; echo evil > ../main/.git/hooks/post-checkout`,
			want:   "BASE/main/.git/hooks/post-checkout BASE/main/.git/worktrees/linked/config.worktree",
		},
		{name: "subfolder", folder: "sub", change: "echo evil > .git/hooks/post-checkout; git init -q sub", want: ".git BASE/repo/.git/hooks/post-checkout"},
		{name: "in an ignored folder", change: "git init -q build/x", want: "build/x/.git"},
		{name: "bare repositories", seed: "git init -q --bare old", change: "git init -q --bare bare; git init -q --bare build/bare; echo evil >> old/config", want: "bare build/bare old/config"},
		{
			name: "ignored hooks", seed: `git config core.hooksPath build/hooks; mkdir -p build/hooks`,
			change: "echo evil > build/hooks/pre-commit", want: "build/hooks/pre-commit",
		},
		{name: "new folder of hooks", seed: "git config core.hooksPath build/hooks", change: "mkdir -p build/hooks; echo evil > build/hooks/pre-commit", want: "build/hooks build/hooks/pre-commit"},
		{name: "link to hooks", seed: "mkdir -p build/hooks; rm -r .git/hooks; ln -s ../build/hooks .git", change: "echo evil > build/hooks/pre-commit", want: ".git/hooks/pre-commit"},
		{
			name:   "ignored files that settings name",
			seed:   `mkdir -p build; touch build/b build/c; git config include.path ../build/a; git config filter.x.clean "./build/b %f"; git config alias.x '!sh "build/c"'`,
			change: "for f in a b c; do echo evil > build/$f; done", want: "build/a build/b build/c",
		},
		{
			name: "end of a long hook", seed: "head -c 2000000 /dev/zero > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
			change: "printf evil | dd status=none conv=notrunc bs=1 seek=1900000 of=.git/hooks/pre-commit", want: ".git/hooks/pre-commit",
		},
		{
			name: "submodule with the name of a state", seed: "git init -q --bare .git/modules/refs; git init -q --bare .git/modules/x.lock",
			change: "for m in refs x.lock; do echo evil >> .git/modules/$m/config; done", want: ".git/modules/refs/config .git/modules/x.lock/config",
		},
		{name: "folder of mini", seed: "mkdir own", change: "git init -q own/x; git init -q --bare own/y"},
		{name: "no repository", seed: "rm -rf .git", change: "git init -q", want: ".git"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := repository(t, tt.seed)
			g := undo.ReadGitFiles(t.Context(), filepath.Join(dir, tt.folder), filepath.Join(dir, "own"))
			sh(t, dir, tt.change)
			got := strings.ReplaceAll(strings.Join(g.Changed(), " "), filepath.Dir(dir), "BASE")
			if diff := cmp.Diff(strings.Fields(tt.want), strings.Fields(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Files that hide a new repository behind the limit are named instead of it.
func TestManyFiles(t *testing.T) {
	defer undo.SetMaxEntries(100)()
	dir := repository(t, "")
	g := undo.ReadGitFiles(t.Context(), dir, filepath.Join(dir, "own"))
	sh(t, dir, "mkdir .h; touch .h/{1..100}; git init -q sub/evil")
	if got := g.Changed(); len(got) != 1 || !strings.Contains(got[0], "more than 100 files") {
		t.Errorf("got %q", got)
	}
	if got := undo.ReadGitFiles(t.Context(), dir, filepath.Join(dir, "own")).Changed(); len(got) > 0 {
		t.Errorf("of a large folder: %q", got)
	}
}
