package worktree_test

import (
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

// dirty is a repository with many uncommitted changes.
const dirty = seed + `
printf 'out\n/lib/\n' >> .gitignore; git commit -qam ignore
echo dirt >> a.txt
rm crlf.txt
echo staged > staged.txt; git add staged.txt; echo more >> staged.txt
git rm -q --cached code.py
mkdir -p built lib empty; printf 'caf\xe9\n' > built/latin.txt; printf '\0' > "built/b 'lob"; echo x > lib/x.so; echo x > out
echo forced > forced.log; git add -f forced.log
truncate -s 9000000 large.bin
mkdir large; for i in 1 2 3 4 5; do head -c 4000000 /dev/zero > large/$i; done
git init -q nested; echo n > nested/n; git init -q nested/inner; echo i > nested/inner/i
ln -s a.txt new-link; chmod +x sub/latin.txt`

// A diff is against the state at the start: it does not contain earlier
// changes, and applies to the files at the start.
func TestDiffIsAgainstTheStart(t *testing.T) {
	tests := []struct {
		name    string
		change  []string // lines of a script
		in, out []string
		omitted []string
	}{
		{
			name: "nothing, though git and the repositories in it say all is new",
			change: []string{
				"git add -A . ':!nested'; git commit -qm all",
				"for d in nested nested/inner large; do mkdir $d/__pycache__; echo x > $d/__pycache__/n.pyc; done; git -C nested/inner add -A",
			},
		},
		{
			name: "changes",
			change: []string{
				"echo mine >> a.txt; echo mine >> code.py; echo back > crlf.txt",
				"echo mine >> staged.txt; rm 'built/b '*; printf 'caf\\xe9\\nun\\n' > built/latin.txt; echo mine > built/new",
				"echo x >> large.bin; rm large/3; echo x > nested/.hidden; git init -q nested2; echo x > nested2/f",
				"echo mine > lib/mine; git add -f lib out; echo mine > forced2.log; git add -f forced2.log; echo new > new-link.txt",
			},
			in: []string{
				" dirt\n+mine", "+back", "a/code.py", " staged\n more\n+mine", "deleted file", "built/latin.txt", "b/built/new",
				"b/lib/mine", "b/forced2.log", "b/new-link.txt",
			},
			out:     []string{"+dirt", "+staged", "b/lib/x.so", "b/out"},
			omitted: []string{"large.bin", "large/", "lib/x.so", "nested/", "nested2/", "out"},
		},
		{
			name:    "all is taken back",
			change:  []string{"git reset -q --hard; git clean -qfd"},
			in:      []string{"-dirt", "+++ /dev/null", "b/crlf.txt"},
			omitted: []string{"large.bin", "large/"},
		},
		{
			name: "what was ignored is not, what was large is small",
			change: []string{
				"printf '!out\\n!/lib\\n' >> .gitignore; echo x >> lib/x.so; echo x > lib/mine",
				"echo x > large.bin; echo x >> nested/inner/i",
			},
			in:      []string{"+!out", "b/lib/mine"},
			out:     []string{"x.so"},
			omitted: []string{"large.bin", "lib/x.so", "nested/", "out"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t, dirty, "cp -a . ../fresh")
			fresh := filepath.Join(dir, "..", "fresh")
			git := func() map[string]string {
				all := files(t, filepath.Join(dir, ".git"))
				all["index"] = sh(t, dir, "git ls-files -s")
				return all
			}
			before := git()
			junk := []string{"__pycache__/"}
			tree := openWith(t, dir, worktree.Config{Exclude: junk})
			assert.NoDiff(t, cmp.Diff(before, git()), "the repository was changed")
			sh(t, dir, strings.Join(tt.change, "\n"))
			diff, err := tree.Diff(t.Context())
			if err != nil || !diff.Exact {
				t.Fatalf("%v, exact %t, %s", err, diff.Exact, diff.Problem)
			}
			checkPatch(t, diff.Patch, tt.in, tt.out)
			var omitted []string
			for _, o := range diff.Omitted {
				omitted = append(omitted, o.Name)
			}
			if slices.Sort(omitted); !slices.Equal(omitted, tt.omitted) {
				t.Errorf("left out %q, want %q", diff.Omitted, tt.omitted)
			}
			// As from a journal.
			state := tree.Start()
			again, err := openWith(t, dir, worktree.Config{Start: &state, Exclude: junk}).Diff(t.Context())
			if err != nil || !cmp.Equal(again, diff) {
				t.Errorf("with the recorded state: %v, the diff is another:\n%s", err, cmp.Diff(diff, again))
			}
			if tt.in == nil {
				assert.Equal(t, 0, len(diff.Patch), "there is a patch:\n%.3000s", diff.Patch)
				return
			}
			require.NoError(t, os.WriteFile(filepath.Join(fresh, "..", "p.diff"), diff.Patch, 0o600))
			sh(t, fresh, "git apply ../p.diff")
			skip := []string{".git", "out", "large.bin", "large", "nested", "nested2", "x.so"}
			assert.NoDiff(t, cmp.Diff(files(t, dir, skip...), files(t, fresh, skip...)), "the patch gives other files (-want +got)")
		})
	}
}

// In an ignored folder with too many files to list, only files that the agent
// added explicitly count as new. Other folders are not affected.
func TestIgnoredFolderWithManyFiles(t *testing.T) {
	t.Parallel()
	dir := repository(t, seed, `printf 'many/\nfew/\n' >> .gitignore; git commit -qam ignore
mkdir many few; echo x > few/old; cd many; seq -f 'a-name-of-250-bytes-%0230.0f' 1100 | xargs touch`)
	tree := open(t, dir)
	if state := tree.Start(); len(state.Ignored) > 1000 || !strings.Contains(string(state.Ignored), "few/old\x00") {
		t.Errorf("%d bytes of ignored names: %.1000q", len(state.Ignored), state.Ignored)
	}
	sh(t, dir, "echo x > many/staged; git add -f many/staged; echo x > many/other; echo x > few/new; sed -i /many/d .gitignore; sed -i /few/d .gitignore")
	diff, err := tree.Diff(t.Context())
	if err != nil || !diff.Exact {
		t.Fatalf("%v, exact %t: %s", err, diff.Exact, diff.Problem)
	}
	for name, want := range map[string]bool{"b/many/staged": true, "b/few/new": true, "b/many/other": false, "b/few/old": false, "b/many/a-name": false} {
		assert.Equal(t, want, strings.Contains(string(diff.Patch), name), "%s in the patch:\n%.3000s", name, diff.Patch)
	}
	if diff.OmittedCount != 1102 || !strings.Contains(diff.Omitted[1].Reason, "too many files") {
		t.Errorf("%d are left out: %q", diff.OmittedCount, diff.Omitted[:2])
	}
}

// The output of git diff is against HEAD. It is kept if it applies to the files
// at the start, else it is regenerated for them.
func TestCheckAgainstTheStart(t *testing.T) {
	t.Parallel()
	dir := repository(t, dirty, "rm -rf large* nested")
	tree := open(t, dir)
	for name, tt := range map[string]struct {
		make, refusal string
		remade        bool
		out           string // not part of the patch
	}{
		"of a clean file":           {make: "printf 'x\\nz\\n' > sub/latin; echo y >> .gitignore; git diff -- .gitignore"},
		"of a dirty file":           {make: "echo mine >> a.txt; git diff -- a.txt", remade: true, out: "+dirt"},
		"without its last line end": {make: "echo mine >> a.txt; printf %s \"$(git diff -- a.txt)\"", remade: true, out: "+dirt"},
		"of nothing":                {make: "git diff -- crlf.txt", refusal: "before the work began"},
		"of another file":           {make: "git diff -- a.txt | sed 's/one/eins/'", refusal: "a.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			text := sh(t, t.TempDir(), "cp -a "+dir+" copy; cd copy; "+tt.make)
			found, err := tree.Check(t.Context(), []byte(text))
			if err != nil || found.Regenerated != tt.remade || !strings.Contains(found.GitError, tt.refusal) || (found.GitError == "") != (tt.refusal == "") {
				t.Fatalf("%v, %+v\nof\n%s", err, found, text)
			}
			if found.GitError != "" {
				return
			}
			if tt.out != "" && strings.Contains(string(found.Patch), tt.out) {
				t.Errorf("%q is in\n%s", tt.out, found.Patch)
			}
		})
	}
	text := sh(t, dir, "echo mine >> a.txt; echo mine >> staged.txt; git add -A; git diff --cached --binary --ignore-submodules")
	found, err := tree.Check(t.Context(), []byte(text))
	if err != nil || !found.Regenerated || strings.Contains(string(found.Patch), "+dirt") {
		t.Errorf("of all: %v, %+v", err, found)
	}
	if diff, err := tree.Diff(t.Context()); err != nil || diff.Tree != found.Tree || string(diff.Patch) != string(found.Patch) {
		t.Errorf("%v, the diff is\n%s\nnot\n%s", err, diff.Patch, found.Patch)
	}
}

// A recorded state that cannot be restored is reported at once.
func TestStateCannotBeRestored(t *testing.T) {
	t.Parallel()
	dir := repository(t, dirty, "")
	state := open(t, dir).Start()
	state.Patch = []byte(strings.ReplaceAll(string(state.Patch), "dirt", "[removed]"))
	_, err := worktree.Open(t.Context(), sandbox(t, local.Config{Dir: dir}), worktree.Config{Start: &state})
	assert.ErrorContains(t, err, "cannot be made again")
}
