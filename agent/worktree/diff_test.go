package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env/local"
)

// The content of a patch, whatever the agent did to git.
func TestDiff(t *testing.T) {
	junk := worktree.Config{Exclude: []string{"__pycache__/", "*.pyc", "/patch.txt", "kept.junk"}}
	tests := []struct {
		name, seed, change string
		cfg                worktree.Config
		in, out            []string
	}{
		{"junk is new", "", "mkdir -p p/__pycache__; echo x > p/__pycache__/a.pyc; echo x > b.pyc; echo x > patch.txt; echo x > sub/patch.txt; echo x >> a.txt", junk, []string{"+x", "b/sub/patch.txt"}, []string{"pyc", " b/patch.txt"}},
		{"junk is tracked", "echo 1 > old.pyc; git add -f old.pyc; git commit -qm pyc", "echo 2 > old.pyc; echo 3 > new.pyc", junk, []string{"b/old.pyc"}, []string{"new.pyc"}},
		{"junk is staged, and committed", "", "echo 1 > staged.pyc; git add -f staged.pyc; git commit -qm x; echo 2 > s.pyc; git add s.pyc; echo x > new.txt", junk, []string{"new.txt"}, []string{"pyc"}},
		{"the repository wants it", "echo '!kept.junk' > .gitignore; git add .; git commit -qm keep", "echo x > kept.junk", junk, []string{"kept.junk"}, nil},
		{"ignored, but added by name", "", "echo x > d.log; git add -f d.log; echo y > e.log", worktree.Config{}, []string{"d.log"}, []string{"e.log"}},
		{"renamed", "", "git mv a.txt b.txt; mv code.py moved.py", worktree.Config{}, []string{"deleted file mode", "b/b.txt", "a/code.py", "b/moved.py"}, []string{"rename"}},
		{"hidden by bits of the index", "", "git update-index --assume-unchanged a.txt; git update-index --skip-worktree code.py; echo x >> a.txt; echo y >> code.py", worktree.Config{}, []string{"+x", "+y"}, nil},
		{"changed in the second of the index", "", `touch -d @1000000000 code.py; git update-index --refresh; echo "x = 2" > code.py; touch -d @1000000000 code.py .git/index`, worktree.Config{}, []string{"+x = 2"}, nil},
		{"settings against us", "", `for c in diff.context=0 diff.noprefix=true core.autocrlf=true core.bare=true core.worktree=/ diff.relative=true apply.whitespace=fix core.fileMode=false core.symlinks=false diff.suppressBlankEmpty=true core.excludesFile=/dev/stdin diff.external=false core.pager=false; do git config "$c" 2>/dev/null || git config "${c%%=*}" "${c#*=}"; done; printf 'w\r\n' > w.txt; chmod +x code.py; echo x >> a.txt`, worktree.Config{}, []string{"+x", "+w\r", "100755", " three"}, nil},
		{"settings that cannot be read", "", "echo '[broken' > .git/config; echo x >> a.txt", worktree.Config{}, []string{"+x"}, nil},
		{"a filter of the agent's", "", `printf '*.txt filter=evil diff=evil\n' > .gitattributes; git config filter.evil.clean "tr a-z A-Z"; git config diff.evil.textconv "tr a-z A-Z"; git config diff.evil.command false; echo lower >> a.txt`, worktree.Config{}, []string{"+lower"}, []string{"LOWER"}},
		{"a filter of the repository's", `git config filter.up.clean "tr a-z A-Z"; printf '*.up filter=up\n' > .gitattributes; git add .; git commit -qm up`, "echo loud > x.up", worktree.Config{}, []string{"+LOUD"}, nil},
		{"HEAD replaced", "", "git commit -q --allow-empty -m e; echo x >> a.txt; git commit -qam x; git replace HEAD~2 HEAD; echo y >> a.txt", worktree.Config{}, []string{"+x", "+y"}, nil},
		{"another branch, and the index gone", "", "git checkout -q --orphan o; git rm -rqf --cached .; rm .git/index; echo x >> a.txt", worktree.Config{}, []string{"+x"}, []string{"code.py"}},
		{"HEAD and refs gone", "", "rm -rf .git/HEAD .git/refs .git/packed-refs; echo x >> a.txt", worktree.Config{}, []string{"+x"}, nil},
		{"git init in a folder of the repository's", "", "cd sub; git init -q .; printf 'new\n' > n.txt", worktree.Config{}, []string{"b/sub/n.txt"}, []string{"Subproject"}},
		{"a pipe, a socket, an unreadable file", "", "mkfifo p; echo x >> a.txt; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", worktree.Config{}, []string{"+x"}, []string{"b/p\n", "b/s\n"}},
		{"folders become links, files folders", "", "rm -rf sub; ln -s /etc sub; rm code.py; mkdir code.py; rm a.txt; mkdir a.txt; echo i > a.txt/i", worktree.Config{}, []string{"120000", "a/sub/latin.txt", "b/a.txt/i", "a/code.py"}, []string{"passwd"}},
		{"a split index and fsmonitor", "", "git update-index --split-index; git config core.splitIndex true; git config core.fsmonitor true; echo x >> a.txt; git add a.txt; echo y >> a.txt", worktree.Config{}, []string{"+x", "+y"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, seed+"\n"+tt.seed)
			tree := openWith(t, dir, tt.cfg)
			sh(t, dir, tt.change)
			diff, err := tree.Diff(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !diff.Exact {
				t.Errorf("not exact: %s", diff.Problem)
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
		err          string
	}{
		{"one large file", "head -c 200000 /dev/zero > zero.bin; echo x >> a.txt", []string{"+x"}, []string{"zero.bin"}, ""},
		{"a large folder", "mkdir venv; for i in $(seq 20); do head -c 60000 /dev/urandom > venv/$i; done; echo x >> a.txt; echo new > new.py", []string{"+x", "new.py"}, []string{"venv/"}, ""},
		{"many small ones", "for i in $(seq 40); do head -c 20000 /dev/urandom > sub/$i; done; echo x >> a.txt; echo new > new.py", []string{"+x", "new.py"}, []string{"sub/1"}, ""},
		{"very many tiny ones", "for i in $(seq 2000); do echo '" + strings.Repeat("y", 60) + "' > sub/$i; done; echo x >> a.txt", []string{"+x"}, []string{"sub/1"}, ""},
		{"a database of the repository's", "head -c 300000 /dev/urandom > code.py; echo x >> a.txt", []string{"+x"}, []string{"code.py"}, ""},
		{"huge", "truncate -s 300G huge; mkdir h; truncate -s 300G h/huge; truncate -s 300G code.py; echo x >> a.txt", []string{"+x"}, []string{"huge", "code.py"}, ""},
		{"many changed", "for f in a.txt code.py crlf.txt; do seq 100000 > $f; done", nil, []string{"a.txt"}, ""},
		{"an index of the agent's", "truncate -s 50G .git/index; echo x >> a.txt", []string{"+x"}, nil, ""},
		{"the repository is gone", "rm -rf .git; echo x >> a.txt", nil, nil, "gone"},
		{"another one in its place", "rm -rf .git; git init -q .; git add -A; git commit -qm anew; echo x >> a.txt", nil, nil, "gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, seed)
			tree := openWith(t, dir, worktree.Config{MaxPatch: limit})
			sh(t, dir, tt.change)
			diff, err := tree.Diff(t.Context())
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, without %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(diff.Patch) > limit || !diff.Exact {
				t.Errorf("%d bytes, exact %t: %s", len(diff.Patch), diff.Exact, diff.Problem)
			}
			for _, want := range tt.in {
				if !strings.Contains(string(diff.Patch), want) {
					t.Errorf("no %q in\n%.2000s", want, diff.Patch)
				}
			}
			for _, name := range tt.omitted {
				if !slices.ContainsFunc(diff.Omitted, func(o worktree.Omission) bool { return o.Name == name }) || diff.OmittedCount < len(diff.Omitted) {
					t.Errorf("%q is not among the %d: %q", name, diff.OmittedCount, diff.Omitted)
				}
			}
		})
	}
}

// The scripts run in any POSIX shell with its usual tools.
func TestShells(t *testing.T) {
	shells := map[string]string{"dash": "dash", "bash": "bash", "busybox": "busybox"}
	for name, program := range shells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(program)
			if err != nil {
				t.Skipf("there is no %s on this machine", program)
			}
			bin := t.TempDir()
			if name == "busybox" {
				// Only busybox and git.
				sh(t, bin, `busybox --install -s . && ln -sf "$(command -v git)" git`)
			} else if err := os.Symlink(path, filepath.Join(bin, "sh")); err != nil {
				t.Fatal(err)
			}
			search := bin + ":" + os.Getenv("PATH")
			if name == "busybox" {
				search = bin
			}
			dir := t.TempDir()
			sh(t, dir, story+seed)
			sb := disposable{sandbox(t, local.Config{Dir: dir, Env: map[string]string{"PATH": search}})}
			if report, err := worktree.Scrub(t.Context(), sb); err != nil || !report.IsClean() || report.ObjectsRemoved == 0 {
				t.Fatalf("%v, %+v", err, report)
			}
			tree, err := worktree.Open(t.Context(), sb, worktree.Config{MaxPatch: 100_000, Exclude: []string{"*.pyc"}})
			if err != nil || tree.Base == "" {
				t.Fatalf("%v, %+v", err, tree)
			}
			sh(t, dir, `echo "it's" >> a.txt; rm code.py; mkdir new venv; printf 'n\xe9w' > 'new/sp ace'; echo x > x.pyc; for i in 1 2 3 4 5 6 7 8 9; do head -c 60000 /dev/urandom > venv/$i; done; git init -q nested`)
			diff, err := tree.Diff(t.Context())
			if err != nil || !diff.Exact || diff.OmittedCount != 2 || diff.Omitted[0].Name != "venv/" || diff.Omitted[1].Name != "nested/" {
				t.Fatalf("%v, %+v", err, diff)
			}
			for _, want := range []string{"+it's", "deleted file", "sp ace"} {
				if !strings.Contains(string(diff.Patch), want) {
					t.Errorf("no %q in\n%s", want, diff.Patch)
				}
			}
			for _, patch := range []string{string(diff.Patch), strings.TrimSuffix(string(diff.Patch), "\n")} {
				if found, err := tree.Check(t.Context(), []byte(patch)); err != nil || found.GitError != "" || found.Tree != diff.Tree {
					t.Errorf("%v, %q, tree %s instead of %s", err, found.GitError, found.Tree, diff.Tree)
				}
			}
			if found, err := tree.Check(t.Context(), []byte("no patch\n")); err != nil || found.GitError == "" {
				t.Errorf("%v, %+v", err, found)
			}
		})
	}
}

func TestWithoutGit(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	sh(t, dir, seed)
	sh(t, bin, `ln -s "$(command -v sh)" sh`)
	sb := disposable{sandbox(t, local.Config{Dir: dir, Env: map[string]string{"PATH": bin}})}
	tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
	if err != nil || tree.Base != "" || tree.Missing != "no git" {
		t.Fatalf("%v, %+v", err, tree)
	}
	if diff, err := tree.Diff(t.Context()); err != nil || diff.Patch != nil {
		t.Errorf("%v, %+v", err, diff)
	}
	if _, err := worktree.Scrub(t.Context(), sb); err == nil || !strings.Contains(err.Error(), "no git") {
		t.Errorf("the error is %v", err)
	}
}

// A file that git rejects does not affect others, and is listed with the
// reason.
func TestFilesThatGitRejects(t *testing.T) {
	const many = `mkdir many; for i in $(seq 700); do echo $i > many/$i; done; `
	for name, tt := range map[string]struct {
		seed, change string
		in           []string
		omitted      map[string]string // reasons by name
	}{
		"an encoding": {
			"", many + `printf '*.u working-tree-encoding=UTF-16\n' > .gitattributes; echo x > many/350.u; echo x > z.u; echo x >> a.txt`,
			[]string{"b/many/1\n", "b/many/700\n", "b/.gitattributes", "+x"},
			map[string]string{"many/350.u": "BOM is required", "z.u": "BOM is required"},
		},
		"an encoding of a file that was there": {
			"", `printf '*.py working-tree-encoding=UTF-16\n' > .gitattributes; echo x >> code.py; echo x >> a.txt`,
			[]string{"b/.gitattributes", "+x"},
			map[string]string{"code.py": "BOM is required"},
		},
		"a filter": {
			`printf '*.up filter=up\n' > .gitattributes; git add .; git commit -qm up; git config filter.up.clean false; git config filter.up.required true`,
			many + "echo x > x.up",
			[]string{"b/many/1\n", "b/many/700\n"},
			map[string]string{"x.up": "filter"},
		},
		"a name": {"", many + "echo x > many/git~1", []string{"b/many/1\n", "b/many/700\n"}, map[string]string{"many/git~1": "Ignoring path"}},
		"all of many": {
			"", `printf '/sub/*.u working-tree-encoding=UTF-16\n' > .gitattributes; for i in $(seq 60); do echo x > sub/$i.u; echo x > sub/$i; done`,
			[]string{"b/sub/1\n", "b/sub/60\n"},
			map[string]string{"sub/1.u": "BOM is required"},
		},
		"a folder that is not a repository": {
			"", "mkdir -p new/.git new/deep/.git new/er; echo x > new/f; echo x > new/deep/f; echo x > new/deep/.git/x; echo x > new/er/f",
			[]string{"b/new/f", "b/new/deep/f", "b/new/er/f"},
			nil,
		},
		"a repository in a folder": {
			"", "mkdir -p new/deep; echo x > new/f; echo x > new/deep/f; git init -q new/deep/own; echo x > new/deep/own/f; git init -q own; echo x > own/f",
			[]string{"b/new/f", "b/new/deep/f"},
			map[string]string{"own/": "repository of its own", "new/deep/own/": "repository of its own"},
		},
		"a pipe in the place of a file": {"", "rm a.txt; mkfifo a.txt; echo x >> code.py", []string{"+x"}, map[string]string{"a.txt": "neither a file nor a link"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, seed+"\n"+tt.seed)
			tree := open(t, dir)
			sh(t, dir, tt.change)
			diff, err := tree.Diff(t.Context())
			if err != nil || !diff.Exact {
				t.Fatalf("%v, exact %t: %s", err, diff.Exact, diff.Problem)
			}
			for _, want := range tt.in {
				if !strings.Contains(string(diff.Patch), want) {
					t.Errorf("no %q in\n%.2000s", want, diff.Patch)
				}
			}
			reasons := map[string]string{}
			for _, o := range diff.Omitted {
				reasons[o.Name] = o.Reason
			}
			for name, want := range tt.omitted {
				if !strings.Contains(reasons[name], want) || strings.Contains(string(diff.Patch), "b/"+name) {
					t.Errorf("%s is left out as %q, without %q, or is in the patch", name, reasons[name], want)
				}
			}
			if len(tt.omitted) != len(reasons) && name != "all of many" {
				t.Errorf("left out %q", diff.Omitted)
			}
		})
	}
}
