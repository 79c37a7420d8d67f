//go:build unix

package runner_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
)

// An untrusted folder may contain anything under the names of a run's files.
func TestReadHostileRun(t *testing.T) {
	dir, _ := finishedRun(t)
	pipe := filepath.Join(dir, "pipe", "attempts", "1")
	if err := os.MkdirAll(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(pipe, "journal.jsonl"), 0o600); err != nil {
		t.Skip(err)
	}
	writeFileAt(t, filepath.Join(dir, "odd", "attempts", "1", "journal.jsonl"), "\x00\x01 no journal\n")
	writeFileAt(t, filepath.Join(dir, "odd", "attempts", "zero", "journal.jsonl"), "")
	writeFileAt(t, filepath.Join(dir, "results.json"), `{"format":"mini-1","instances":{"../../etc":{"class":"submitted"}}}`)
	linked := filepath.Join(dir, "linked")
	if err := errors.Join(os.Mkdir(linked, 0o755), os.Symlink(filepath.Join("..", "a", "attempts"), filepath.Join(linked, "attempts"))); err != nil {
		t.Fatal(err)
	}
	run := readRun(t, dir)
	var ids []string
	for _, in := range run.Instances {
		ids = append(ids, in.ID)
		if in.ID == "linked" && len(in.Attempts) > 0 {
			t.Errorf("the attempts of another instance are taken through a link: %+v", in.Attempts)
		}
		if in.ID == "../../etc" && len(run.Files(in)) > 0 {
			t.Errorf("an id became a path: %q", run.Files(in))
		}
	}
	if diff := cmp.Diff([]string{"../../etc", "a", "b", "linked", "odd", "pipe"}, ids); diff != "" {
		t.Error(diff)
	}
	if text := fmt.Sprint(run.ReadErrors); !strings.Contains(text, "attempt 1 of pipe: its journal is not a plain file") {
		t.Errorf("unread: %s", text)
	}
	x, err := runs.Detect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if in, _ := x.Find("linked"); len(in.Attempts) > 0 {
		t.Errorf("an attempt through a link: %+v", in)
	}
	for _, unread := range [][]string{run.ReadErrors, x.ReadErrors} {
		if text := fmt.Sprint(unread); !strings.Contains(text, filepath.Join("linked", "attempts")+" is not a folder") {
			t.Errorf("unread: %s", text)
		}
	}
}

// A pipe or an endless file in place of the lock is not read.
func TestReadHostileLock(t *testing.T) {
	tests := []struct {
		name string
		make func(lock string) error
	}{
		{"pipe", func(lock string) error { return syscall.Mkfifo(lock, 0o600) }},
		{"endless", func(lock string) error { return os.Symlink("/dev/zero", lock) }},
		{"link to a lock", func(lock string) error {
			return errors.Join(os.WriteFile(lock+"2", fmt.Append(nil, os.Getpid()), 0o600), os.Symlink(lock+"2", lock))
		}},
		{"long", func(lock string) error {
			return os.WriteFile(lock, fmt.Appendf(nil, "%d%s", os.Getpid(), strings.Repeat(" ", 100)), 0o600)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, b := finishedRun(t)
			if _, err := b.Folder.StartSession(runs.Manifest{}, nil); err != nil {
				t.Fatal(err)
			}
			lock := filepath.Join(dir, ".lock")
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
			if err := tt.make(lock); err != nil {
				t.Skip(err)
			}
			if run := readRun(t, dir); run.WorkerPID != 0 {
				t.Errorf("worker %d", run.WorkerPID)
			}
		})
	}
}

// A pipe in place of the attempts' folder does not block.
func TestReadHostileAttempts(t *testing.T) {
	dir, _ := finishedRun(t)
	if err := os.MkdirAll(filepath.Join(dir, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "x", "attempts"), 0o600); err != nil {
		t.Skip(err)
	}
	if run := readRun(t, dir); !strings.Contains(fmt.Sprint(run.ReadErrors), "read attempts") {
		t.Errorf("unread: %q", run.ReadErrors)
	}
}

// A new run folder is for its user alone, unless the run is shared. The mode of an existing
// folder, and of those above a new one, does not change.
func TestFolderMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	parent := filepath.Join(t.TempDir(), "runs")
	open := func(name string, mode fs.FileMode) {
		t.Helper()
		f, err := runner.OpenWithMode(filepath.Join(parent, name), mode)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := runner.Open(filepath.Join(parent, "own") + "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	open("shared", 0o755)
	open("shared", 0o700)
	for name, want := range map[string]fs.FileMode{"": 0o755, "own": 0o700, "shared": 0o755} {
		if info, err := os.Stat(filepath.Join(parent, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

// An untrusted folder can be used for a run: links are not followed, pipes do not
// block.
func TestOpenHostileFolder(t *testing.T) {
	for _, name := range []string{".lock", "events.jsonl"} {
		for kind, make := range map[string]func(path string) error{
			"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"link": func(path string) error { return os.Symlink("/dev/null", path) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				dir := t.TempDir()
				writeFileAt(t, filepath.Join(dir, "run.json"), "{}")
				if err := make(filepath.Join(dir, name)); err != nil {
					t.Skip(err)
				}
				f, err := runner.Open(dir)
				if err == nil {
					t.Error("opened", f.Close())
				}
				if !errors.Is(err, runner.ErrNotEmpty) || !strings.Contains(err.Error(), name) {
					t.Errorf("error %v, want ErrNotRun that names %s", err, name)
				}
			})
		}
	}
}
