package worktree_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env/local"
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
head -c 9000000 /dev/urandom > large.bin
mkdir large; for i in 1 2 3 4 5; do head -c 4000000 /dev/zero > large/$i; done
git init -q nested; echo n > nested/n; git init -q nested/inner; echo i > nested/inner/i
ln -s a.txt new-link; chmod +x sub/latin.txt`

// A diff is against the state at the start: it does not contain earlier
// changes, and applies to the files at the start.
func TestDiffIsAgainstTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		change  string
		in, out []string
		omitted []string
	}{
		"nothing":                     {change: "true"},
		"git says all":                {change: "git add -A . ':!nested'; git commit -qm all"},
		"files of the commit":         {change: "echo mine >> a.txt; echo mine >> code.py; echo back > crlf.txt", in: []string{" dirt\n+mine", "+back", "a/code.py"}, out: []string{"+dirt", "staged", "built"}},
		"files that were new":         {change: "echo mine >> staged.txt; rm 'built/b '*; printf 'caf\\xe9\\nun\\n' > built/latin.txt; echo mine > built/new", in: []string{" staged\n more\n+mine", "deleted file", "built/latin.txt", "b/built/new"}},
		"all is taken back":           {change: "git reset -q --hard; git clean -qfd", in: []string{"-dirt", "+++ /dev/null", "b/crlf.txt"}, omitted: []string{"large.bin", "large/"}},
		"what was left out":           {change: "echo x >> large.bin; rm large/3; echo x > mine", in: []string{"b/mine"}, omitted: []string{"large.bin", "large/"}},
		"what was large is small":     {change: "echo x > large.bin", omitted: []string{"large.bin"}},
		"what was ignored is added":   {change: "git add -f lib out; echo mine > lib/mine; echo mine > forced2.log; git add -f forced2.log", in: []string{"b/forced2.log"}, out: []string{"b/lib", "b/out"}, omitted: []string{"lib/x.so", "out"}},
		"new where all is ignored":    {change: "echo mine > lib/mine; git add -f lib/mine", in: []string{"b/lib/mine"}},
		"junk in what was left out":   {change: "for d in nested nested/inner large; do mkdir $d/__pycache__; echo x > $d/__pycache__/n.pyc; done; git -C nested/inner add -A"},
		"hidden in what was left out": {change: "echo x > nested/.hidden; echo x > mine", in: []string{"b/mine"}, omitted: []string{"nested/"}},
		"in an inner repository":      {change: "echo x >> nested/inner/i; echo x > mine", in: []string{"b/mine"}, omitted: []string{"nested/"}},
		"what was ignored is not":     {change: "printf '!out\\n!/lib\\n' >> .gitignore; echo x >> lib/x.so; echo x > lib/mine", in: []string{"+!out", "b/lib/mine"}, out: []string{"x.so"}, omitted: []string{"lib/x.so", "out"}},
		"the repository's new work":   {change: "git init -q nested2; echo x > nested2/f", omitted: []string{"nested2/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, fresh := filepath.Join(t.TempDir(), "repo"), filepath.Join(t.TempDir(), "fresh")
			sh(t, ".", "mkdir -p "+dir)
			sh(t, dir, dirty)
			sh(t, ".", "cp -a "+dir+" "+fresh)
			const git = "find .git -type f ! -path .git/index | sort | xargs sha256sum; git ls-files -s"
			before := sh(t, dir, git)
			junk := []string{"__pycache__/"}
			tree := openWith(t, dir, worktree.Config{Exclude: junk})
			if after := sh(t, dir, git); after != before {
				t.Errorf("the repository was changed:\n%s\n%s", before, after)
			}
			sh(t, dir, tt.change)
			for _, kept := range []bool{false, true} {
				if kept { // as from a journal
					state := tree.Start()
					tree = openWith(t, dir, worktree.Config{Start: &state, Exclude: junk})
				}
				diff, err := tree.Diff(t.Context())
				if err != nil || !diff.Exact {
					t.Fatalf("%v, exact %t, %s", err, diff.Exact, diff.Problem)
				}
				for _, want := range tt.in {
					if !strings.Contains(string(diff.Patch), want) {
						t.Errorf("no %q in\n%s", want, diff.Patch)
					}
				}
				for _, not := range tt.out {
					if strings.Contains(string(diff.Patch), not) {
						t.Errorf("%q is in\n%s", not, diff.Patch)
					}
				}
				if tt.in == nil && len(diff.Patch) > 0 {
					t.Errorf("there is a patch:\n%.3000s", diff.Patch)
				}
				var omitted []string
				for _, o := range diff.Omitted {
					omitted = append(omitted, o.Name)
				}
				if slices.Sort(omitted); !slices.Equal(omitted, tt.omitted) {
					t.Errorf("left out %q, want %q", diff.Omitted, tt.omitted)
				}
				if len(diff.Patch) == 0 || kept {
					continue
				}
				if err := os.WriteFile(filepath.Join(fresh, "..", "p.diff"), diff.Patch, 0o600); err != nil {
					t.Fatal(err)
				}
				sh(t, fresh, "git apply ../p.diff")
				const files = "find . -name .git -prune -o -path ./lib -prune -o -path './large*' -prune -o -path ./out -prune -o -path './nested*' -prune -o -not -type d -printf '%P %m %l\\n' -type f -exec sha256sum {} + | LC_ALL=C sort"
				if want, got := sh(t, dir, files), sh(t, fresh, files); want != got {
					t.Errorf("the patch gives other files.\nwant:\n%s\ngot:\n%s", want, got)
				}
			}
		})
	}
}

// In an ignored folder with too many files to list, only files that the agent
// added explicitly count as new. Other folders are not affected.
func TestIgnoredFolderWithManyFiles(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, seed+`; printf 'many/\nfew/\n' >> .gitignore; git commit -qam ignore
mkdir many few; echo x > few/old; cd many; seq -f 'a-name-of-a-hundred-bytes-%075.0f' 4000 | xargs touch`)
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
		if strings.Contains(string(diff.Patch), name) != want {
			t.Errorf("%s in the patch is not %t:\n%.3000s", name, want, diff.Patch)
		}
	}
	if diff.OmittedCount != 4002 || !strings.Contains(diff.Omitted[1].Reason, "too many files") {
		t.Errorf("%d are left out: %q", diff.OmittedCount, diff.Omitted[:2])
	}
}

// The output of git diff is against HEAD. It is kept if it applies to the files
// at the start, else it is regenerated for them.
func TestCheckAgainstTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		make, refusal string
		remade        bool
		out           string // not part of the patch
	}{
		"of a clean file":           {make: "printf 'x\\nz\\n' > sub/latin; echo y >> .gitignore; git diff -- .gitignore"},
		"of a dirty file":           {make: "echo mine >> a.txt; git diff -- a.txt", remade: true, out: "+dirt"},
		"of all":                    {make: "echo mine >> a.txt; echo mine >> staged.txt; git add -A; git diff --cached --binary --ignore-submodules", remade: true, out: "+dirt"},
		"without its last line end": {make: "echo mine >> a.txt; printf %s \"$(git diff -- a.txt)\"", remade: true, out: "+dirt"},
		"of nothing":                {make: "git diff -- crlf.txt", refusal: "before the work began"},
		"of another file":           {make: "git diff -- a.txt | sed 's/one/eins/'", refusal: "a.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, dirty+"; rm -rf large* nested")
			tree := open(t, dir)
			text := sh(t, dir, tt.make)
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
			if strings.HasPrefix(name, "of all") {
				if diff, err := tree.Diff(t.Context()); err != nil || diff.Tree != found.Tree || string(diff.Patch) != string(found.Patch) {
					t.Errorf("%v, the diff is\n%s\nnot\n%s", err, diff.Patch, found.Patch)
				}
			}
		})
	}
}

// A recorded state that cannot be restored is reported at once.
func TestStateCannotBeRestored(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, dirty)
	state := open(t, dir).Start()
	state.Patch = []byte(strings.ReplaceAll(string(state.Patch), "dirt", "[removed]"))
	if _, err := worktree.Open(t.Context(), sandbox(t, local.Config{Dir: dir}), worktree.Config{Start: &state}); err == nil || !strings.Contains(err.Error(), "cannot be made again") {
		t.Errorf("the error is %v", err)
	}
}
