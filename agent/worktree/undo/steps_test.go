package undo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/worktree/undo"
)

// recordStep runs a script as a step and returns its changes.
func recordStep(t *testing.T, s *undo.Snapshot, dir string, number int, script string) string {
	t.Helper()
	sh(t, dir, script)
	d, err := s.RecordStep(t.Context(), number)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range d.Files {
		all = append(all, fmt.Sprintf("%c %s +%d -%d", f.Status, f.Name, f.Added, f.Removed))
	}
	return strings.Join(all, "; ")
}

// folders are a repository, and a folder that is none.
var folders = map[string]func(t *testing.T) (dir, store string, s *undo.Snapshot){
	"a repository": func(t *testing.T) (string, string, *undo.Snapshot) { return start(t, "") },
	"a folder": func(t *testing.T) (string, string, *undo.Snapshot) {
		dir, store := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "store")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		sh(t, dir, strings.Replace(seed, "git init -q -b main .", "", 1)[:strings.Index(seed, "git add -A")-len("git init -q -b main .")])
		sh(t, dir, "echo mine > mine.txt; chmod 600 mine.txt; mkdir build; echo out > build/out; git init -q nested; echo n > nested/n")
		s, err := undo.TakeSnapshot(t.Context(), dir, store)
		if err != nil {
			t.Fatal(err)
		}
		return dir, store, s
	},
}

// Steps are taken back one by one, and what the user has changed between them stays.
func TestSteps(t *testing.T) {
	for name, open := range folders {
		t.Run(name, func(t *testing.T) {
			dir, store, s := open(t)
			atStart := listFiles(t, dir, files)
			for i, test := range []struct{ script, want string }{
				{"ls", ""},
				{"echo one >> code.py; mkdir new; echo n > new/a; printf 'a\\0b' > bin", "A bin +-1 --1; M code.py +1 -0; A new/a +1 -0"},
				{"echo ignored > build/x; [ ! -d nested ] || echo x > nested/y", ""},
				{"sed -i s/one/1/ code.py; rm crlf.txt; chmod +x a.txt", "M a.txt +0 -0; M code.py +1 -1; D crlf.txt +0 -2"},
				{"touch code.py; git status >/dev/null 2>&1 || :", ""},
			} {
				if got := recordStep(t, s, dir, i+1, test.script); got != test.want {
					t.Errorf("step %d: %q, want %q", i+1, got, test.want)
				}
			}
			afterFourth := listFiles(t, dir, files)
			sh(t, dir, "echo user > user.txt; echo user >> mine.txt")
			if err := s.SkipChanges(t.Context()); err != nil {
				t.Fatal(err)
			}
			withUser := listFiles(t, dir, files)
			if got := recordStep(t, s, dir, 6, "echo six >> code.py; rm -r many"); !strings.HasPrefix(got, "M code.py +1 -0; D many/1 +0 -100") {
				t.Errorf("step 6: %q", got)
			}
			// The steps outlive the process.
			s, err := undo.OpenSnapshot(store)
			if err != nil {
				t.Fatal(err)
			}
			if number, d, err := s.LastStep(t.Context()); err != nil || number != 6 || d.Count != 9 || !strings.Contains(string(d.Patch), "+six") {
				t.Errorf("step %d, %v, %+v", number, err, d)
			}
			undoStep := func(restored, removed, skipped string) {
				t.Helper()
				result, err := s.UndoStep(t.Context())
				if got := strings.Join(result.Restored, " "); err != nil || got != restored || strings.Join(result.Removed, " ") != removed || strings.Join(result.Skipped, " ") != skipped {
					t.Errorf("%v, %+v", err, result)
				}
			}
			undoStep("code.py many/1 many/2 many/3 many/4 many/5 many/6 many/7 many/8", "", "")
			if got := listFiles(t, dir, files); got != withUser {
				t.Errorf("after step 6 was undone:\n%s", changedLines(withUser, got))
			}
			sh(t, dir, "rm user.txt; sed -i '/^user/d' mine.txt; git status >/dev/null 2>&1 || :")
			if got := listFiles(t, dir, files); got != afterFourth {
				t.Errorf("before the user's changes:\n%s", changedLines(afterFourth, got))
			}
			sh(t, dir, "echo user >> code.py") // a file of step 4 that changes later stays
			undoStep("a.txt crlf.txt", "", "code.py")
			sh(t, dir, "sed -i '/^user/d' code.py; sed -i s/^1/one/ code.py")
			undoStep("code.py", "bin new/a", "")
			if got := listFiles(t, dir, files); strings.Trim(changedLines(atStart, got), "\n") == "" || strings.Contains(changedLines(atStart, got), "code.py") {
				t.Errorf("in the end:\n%s", changedLines(atStart, got))
			}
			if _, err := s.UndoStep(t.Context()); err == nil {
				t.Error("there is another step")
			}
			if number, d, err := s.LastStep(t.Context()); err != nil || number != 0 || d.Summary != "" {
				t.Errorf("%d, %+v, %v", number, d, err)
			}
		})
	}
}

// Restore takes back everything, also after steps were taken back, and forgets the steps.
func TestRestoreForgetsSteps(t *testing.T) {
	for name, open := range folders {
		t.Run(name, func(t *testing.T) {
			dir, _, s := open(t)
			before := listFiles(t, dir, files)
			recordStep(t, s, dir, 1, "echo x >> code.py; echo new > new.txt")
			recordStep(t, s, dir, 2, "echo y >> code.py")
			if _, err := s.UndoStep(t.Context()); err != nil {
				t.Fatal(err)
			}
			d, err := s.Diff(t.Context())
			if err != nil || d.Summary != "2 files changed, 2 insertions" {
				t.Fatalf("%v, %+v", err, d)
			}
			if result, err := s.Restore(t.Context(), d.TreeID); err != nil || !slices.Equal(result.Restored, []string{"code.py"}) {
				t.Errorf("%+v, %v", result, err)
			}
			if after := listFiles(t, dir, files); after != before {
				t.Error(changedLines(before, after))
			}
			if number, _, err := s.LastStep(t.Context()); number != 0 || err != nil {
				t.Error(number, err)
			}
			if got := recordStep(t, s, dir, 3, "echo z >> code.py"); got != "M code.py +1 -0" {
				t.Error(got)
			}
		})
	}
}

// Changes between two sessions belong to no step.
func TestStepsOfAnotherSession(t *testing.T) {
	dir, store, s := start(t, "")
	recordStep(t, s, dir, 1, "echo x >> code.py")
	sh(t, dir, "echo user > user.txt")
	s, err := undo.OpenSnapshot(store)
	if err != nil {
		t.Fatal(err)
	}
	if got := recordStep(t, s, dir, 1, "true"); got != "" {
		t.Errorf("the first step has %q", got)
	}
	if got := recordStep(t, s, dir, 2, "echo y > y"); got != "A y +1 -0" {
		t.Error(got)
	}
}

// A file that was too large when a step began stays as it is.
func TestStepWithUnstoredFile(t *testing.T) {
	dir, _, s := start(t, "")
	recordStep(t, s, dir, 1, "truncate -s 101M large.bin; echo x > x")
	recordStep(t, s, dir, 2, "echo small > large.bin; echo y > x")
	result, err := s.UndoStep(t.Context())
	if err != nil || !slices.Equal(result.Skipped, []string{"large.bin"}) || !slices.Equal(result.Restored, []string{"x"}) {
		t.Errorf("%+v, %v", result, err)
	}
	if got := sh(t, dir, "cat large.bin x"); got != "small\nx\n" {
		t.Error(got)
	}
}

// A git that was killed while it wrote an index does not end the steps.
func TestStaleIndexLock(t *testing.T) {
	dir, store, s := start(t, "")
	recordStep(t, s, dir, 1, "echo x >> code.py")
	for _, name := range []string{"index.now", "index.now.lock"} {
		if err := os.WriteFile(filepath.Join(store, "git", name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := recordStep(t, s, dir, 2, "echo y > y"); got != "A y +1 -0" {
		t.Error(got)
	}
}

// A folder outside of repositories is copied only if it is small, and nothing of it is left then.
func TestLargeFolder(t *testing.T) {
	for name, script := range map[string]string{
		"200 MB": "mkdir a; for i in 1 2 3; do truncate -s 70M a/$i; done", "20000 files": "mkdir a; cd a; seq 20000 | xargs touch",
	} {
		dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
		sh(t, dir, script)
		_, err := undo.TakeSnapshot(t.Context(), dir, store)
		if !errors.Is(err, undo.ErrTooLarge) || !strings.Contains(err.Error(), "more than "+name) || !errors.Is(undo.Check(t.Context(), dir), undo.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(store); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A snapshot leaves out mini's own files below the folder, and an undo leaves them unchanged.
func TestOwnFiles(t *testing.T) {
	for name, script := range map[string]string{"a folder": "", "a repository": "git init -q . && git add mine && git -c user.name=a -c user.email=a@b commit -qm base"} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("XDG_STATE_HOME", filepath.Join(home, "st[a]te"))
			sh(t, home, "mkdir -p 'st[a]te/mini' && echo 1 > 'st[a]te/mini/journal' && echo one > mine")
			sh(t, home, script)
			s, err := undo.TakeSnapshot(t.Context(), home, filepath.Join(home, "st[a]te/mini/snapshot"))
			if err != nil {
				t.Fatal(err)
			}
			if got := recordStep(t, s, home, 1, "echo 2 >> 'st[a]te/mini/journal'; echo new > 'st[a]te/mini/new'; echo two > mine"); got != "M mine +1 -1" {
				t.Error(got)
			}
			d, err := s.Diff(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Restore(t.Context(), d.TreeID); err != nil {
				t.Error(err)
			}
			sh(t, home, "grep -q 2 'st[a]te/mini/journal' && test -e 'st[a]te/mini/new' && grep -q one mine")
		})
	}
}
