package repository

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// editedSeed is a repository with what a patch has to express.
const editedSeed = `export GIT_CONFIG_GLOBAL=/nonexistent GIT_CONFIG_SYSTEM=/nonexistent GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main ../sub; (cd ../sub; echo s > s.txt; mkdir d; echo t > d/t.txt; git add .; git commit -qm s)
git init -q -b main .
printf 'one\ntwo\nthree\n' > a.txt; printf 'exact\r\nlines\r\n' > crlf.txt; printf 'caf\xe9\n' > latin.txt; head -c 2000 /dev/urandom > blob.bin; : > empty
mkdir -p dir/deep 'sp ace' build; for i in 1 2 3 4 5; do seq $i 40 > dir/$i; seq $i 9 > dir/deep/$i; echo $i > "sp ace/$i"; done
printf '#!/bin/sh\n' > run.sh; chmod +x run.sh; ln -s a.txt link; ln -s dir dirlink; ln -s nowhere dangling
printf '*.log\n/build/\n' > .gitignore; echo l > old.log; echo o > build/out
git add -A; git -c protocol.file.allow=always submodule --quiet add ../sub lib/sub; git commit -qm base`

// oddNames are parts of the names of new files.
var oddNames = []string{"n", "sp ace", `q"uote`, "it's", "tab\tx", "new\nline", "é", "\xff\xfe", "-rf", "#h", "!neg", "trail ", "st*r[x]?", `back\slash`, "x.log", "dev null", "a b/c d", "deep/er/still", "1", "a.txt", "Z"}

// edited is a repository of FuzzEdits, which each round sets back.
type edited struct {
	root string
	open Response
}

func newEdited(t testing.TB) *edited {
	root, err := os.MkdirTemp("", "repository-fuzz-") //nolint:usetesting // all rounds of a process share it
	require.NoError(t, err)
	e := &edited{root: root}
	require.NoError(t, os.Mkdir(filepath.Join(root, "template"), 0o700))
	shell(t, filepath.Join(root, "template"), editedSeed)
	e.reset(t)
	t.Chdir(filepath.Join(root, "repo"))
	if e.open, err = serve(Request{Op: Open, Tag: "FUZZ", Time: time.Minute}); err != nil || e.open.State == nil || len(e.open.State.Submodules) == 0 {
		t.Fatalf("%v, %+v", err, e.open)
	}
	return e
}

func shell(t testing.TB, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "bash", "-ec", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func (e *edited) reset(t testing.TB) {
	shell(t, e.root, "rm -rf repo fresh; cp -a template repo; cp -a template fresh")
}

// edit makes one random change.
func edit(r *rand.Rand, top string) {
	var names []string
	_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() == ".git" || path == top {
			if err == nil && entry.IsDir() && path != top {
				return fs.SkipDir
			}
			return nil
		}
		if entry.Name() != ".gitmodules" { // git takes it only as a file
			names = append(names, path)
		}
		return nil
	})
	if len(names) == 0 {
		names = []string{filepath.Join(top, "again")}
	}
	some := func() string { return names[r.IntN(len(names))] }
	fresh := func() string {
		dir := top
		if at := some(); r.IntN(3) > 0 {
			if info, err := os.Lstat(at); err == nil && info.IsDir() {
				dir = at
			}
		}
		return filepath.Join(dir, oddNames[r.IntN(len(oddNames))])
	}
	content := func() []byte {
		lines := []string{"one\n", "two\r\n", "caf\xe9\n", "žluť\n", "\n", "no end", "x = 1\n", " \t\n", "+diff\n", "-- \n", "\x00\x01"}
		var b []byte
		for range r.IntN(30) {
			b = append(b, lines[r.IntN(len(lines))]...)
		}
		return b
	}
	// What fails changes nothing, or a part, which is a change as well.
	write := func(path string) {
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return
		}
		_ = os.WriteFile(path, content(), []fs.FileMode{0o644, 0o755, 0o600}[r.IntN(3)])
	}
	switch at := some(); r.IntN(11) {
	case 0, 1:
		write(fresh())
	case 2:
		write(at)
	case 3:
		if text, err := os.ReadFile(at); err == nil {
			i := r.IntN(len(text) + 1)
			_ = os.WriteFile(at, slices.Concat(text[:i], content(), text[i:]), 0o644)
		}
	case 4:
		_ = os.RemoveAll(at)
	case 5:
		_ = os.Rename(at, fresh())
	case 6:
		_ = os.RemoveAll(at)
		_ = os.Symlink([]string{"a.txt", "/etc", "..", "dir", "sp ace/1", "\xff"}[r.IntN(6)], at)
	case 7:
		_ = os.RemoveAll(at)
		write(filepath.Join(at, oddNames[r.IntN(len(oddNames))]))
	case 8:
		_ = os.RemoveAll(at)
		write(at)
	case 9:
		if info, err := os.Lstat(at); err == nil && info.Mode().IsRegular() {
			_ = os.Chmod(at, info.Mode().Perm()^0o111)
		}
	case 10:
		_ = os.WriteFile(filepath.Join(top, ".gitignore"), []byte([]string{"*.log\n", "", "/build/\n*.log\nZ\n", "dir/\n", "!x.log\n*.log\n"}[r.IntN(5)]), 0o644)
	}
}

// contents returns the files and links below a folder that git has in the index or does
// not ignore, and those of the submodule.
func contents(t *testing.T, top string) map[string]string {
	t.Helper()
	g, err := findGit(false)
	require.NoError(t, err)
	g.dir = top
	names, err := g.list(t.Context(), nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	require.NoError(t, err)
	const sub = "lib/sub"
	_ = filepath.WalkDir(filepath.Join(top, sub), func(path string, entry fs.DirEntry, err error) error { // it may be gone
		if err == nil && !entry.IsDir() && entry.Name() != ".git" {
			names = append(names, strings.TrimPrefix(path, top+"/"))
		}
		return nil
	})
	all := map[string]string{}
	for _, name := range names {
		path := filepath.Join(top, name)
		info, err := os.Lstat(path)
		if real, linkErr := filepath.EvalSymlinks(filepath.Dir(path)); err != nil || info.IsDir() || linkErr != nil || real != filepath.Dir(path) {
			continue // it is gone
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			require.NoError(t, err)
			all[name] = "link " + target
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all[name] = fmt.Sprintf("%t %q", info.Mode()&0o100 != 0, text)
	}
	return all
}

// Whatever was done to the files, the patch makes them of the files at the start.
func FuzzEdits(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(5*seed))
	}
	var e *edited
	f.Cleanup(func() {
		if e != nil {
			_ = os.RemoveAll(e.root)
		}
	})
	f.Fuzz(func(t *testing.T, seed uint64, edits uint8) {
		if e == nil {
			e = newEdited(t)
		}
		e.reset(t)
		top, fresh := filepath.Join(e.root, "repo"), filepath.Join(e.root, "fresh")
		r := rand.New(rand.NewPCG(seed, 1))
		for range edits%40 + 1 {
			edit(r, top)
		}
		res, err := serve(Request{Op: Diff, Tag: "FUZZ", Time: time.Minute, MaxPatch: 5_000_000, Repository: e.open.Repository, Start: e.open.State})
		if err != nil || !res.Exact {
			t.Fatalf("%v, exact %t: %s\n%s", err, res.Exact, res.Problem, res.Patch)
		}
		moved := "\x00"                 // the name of the submodule that moved, if it did
		for _, o := range res.Omitted { // files that are no longer ignored
			switch {
			case strings.Contains(o.Reason, "git repository of its own") && o.Name != "lib/sub/":
				moved = o.Name
			case !strings.Contains(o.Reason, "git ignored"):
				t.Errorf("left out: %s", o)
			}
		}
		if len(res.Patch) > 0 {
			require.NoError(t, os.WriteFile(filepath.Join(e.root, "patch"), res.Patch, 0o600))
			for _, ignored := range []string{"old.log", "build", "build/out", "lib/sub/.git"} { // no patch can say that they are gone
				now, err := os.Lstat(filepath.Join(top, ignored))
				if then, thenErr := os.Lstat(filepath.Join(fresh, ignored)); err != nil || thenErr != nil || now.Mode().Type() != then.Mode().Type() {
					_ = os.RemoveAll(filepath.Join(fresh, ignored))
				}
			}
			shell(t, fresh, "git apply --whitespace=nowarn ../patch")
		}
		want, got := contents(t, top), contents(t, fresh)
		for _, all := range []map[string]string{want, got} {
			maps.DeleteFunc(all, func(name, _ string) bool {
				ignorable := strings.HasPrefix(name, "lib/sub/") && (strings.HasSuffix(name, "x.log") || strings.HasSuffix(name, "/Z") || strings.Contains(name, "/dir/"))
				return ignorable || name == "old.log" || name == "build/out" || strings.HasPrefix(name, moved)
			})
		}
		for name, text := range want {
			assert.Equal(t, text, got[name], "%q", name)
			delete(got, name)
		}
		for name, text := range got {
			t.Errorf("%q is there, %.200s", name, text)
		}
		if t.Failed() {
			t.Logf("the patch:\n%s", res.Patch)
		}
	})
}

// For any input, the readers of foreign text do not panic, and return no more than they
// were given.
func FuzzForeignText(f *testing.F) {
	f.Add([]byte("diff --git a/x b/x\n"))
	f.Add([]byte("diff --git \"a/\\303x\" \"b/\\303x\"\n\xff\nGIT binary patch\n"))
	f.Add([]byte("core.filemode\ntrue\x00filter.x.clean\na \"b\"\x00"))
	f.Add([]byte("1 2\tname\x003\tother/\x00"))
	good, err := Encode(Response{Tree: strings.Repeat("0", 40), Patch: []byte{0, 255}, State: &State{Ignored: []byte("a\x00")}})
	require.NoError(f, err)
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := Decode[Response](data); err == nil {
			again, err := Encode(r)
			require.NoError(t, err)
			if back, err := Decode[Response](again); err != nil || toJSON(t, back) != toJSON(t, r) {
				t.Errorf("%+v became %+v, %v", r, back, err)
			}
		}
		if end, _ := missingNewlines(data); strings.Trim(end, "\n") != "" {
			t.Errorf("%q", end)
		}
		var all []byte
		for s := range fileSections(data) {
			all = append(all, s...)
		}
		if !bytes.Equal(all, data) {
			t.Errorf("sections of %q are %q", data, all)
		}
		binaryAttributes(data)
		for _, l := range (State{LeftOut: data}).leftOut() {
			excludePattern(l.name)
		}
		if s := settingsFile(strings.Repeat("0", 40), data); bytes.Count(s, []byte("\x00")) > 0 {
			t.Errorf("a NUL is in %q", s)
		}
		parseHash(data)
	})
}

func toJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// A temporary folder is made on the first disk with enough space. The error names all.
func TestMakeTemp(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	free := func(dir string) (int64, error) { return map[string]int64{a: 5, b: 5000}[dir], nil }
	dir, err := makeTemp([]string{a, filepath.Join(a, "missing"), b}, "TAG", 100, free)
	if err != nil || filepath.Dir(dir) != b {
		t.Errorf("%s, %v", dir, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := makeTemp([]string{a, b}, "TAG", 100_000, free); !errors.Is(err, errNoSpace) || !strings.Contains(err.Error(), a+" (5 KiB free), "+b+" (5000 KiB free)") {
		t.Errorf("the error is %v", err)
	}
	if removeTemp([]string{a, b}, "TA"); exists(dir) {
		t.Error("the folder is left")
	}
}
