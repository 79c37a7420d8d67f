//go:build unix

package runner_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner"
)

// A folder from a stranger may hold anything under the names of a run.
func TestReadHostileRun(t *testing.T) {
	dir, _ := ran(t)
	pipe := filepath.Join(dir, "pipe", "attempts", "1")
	if err := os.MkdirAll(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(pipe, "journal.jsonl"), 0o600); err != nil {
		t.Skip(err)
	}
	spoil(t, filepath.Join(dir, "odd", "attempts", "1", "journal.jsonl"), "\x00\x01 no journal\n")
	spoil(t, filepath.Join(dir, "odd", "attempts", "zero", "journal.jsonl"), "")
	spoil(t, filepath.Join(dir, "results.json"), `{"format":"mini-1","instances":{"../../etc":{"class":"submitted"}}}`)
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
	if text := fmt.Sprint(run.Unread); !strings.Contains(text, "attempt 1 of pipe: its journal is not a plain file") {
		t.Errorf("unread: %s", text)
	}
	x, err := runner.ReadIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range x.Attempts {
		if a.ID == "linked" {
			t.Errorf("the index has an attempt through a link: %+v", a)
		}
	}
	for _, unread := range [][]string{run.Unread, x.Unread} {
		if text := fmt.Sprint(unread); !strings.Contains(text, filepath.Join("linked", "attempts")+" is not a folder") {
			t.Errorf("unread: %s", text)
		}
	}
}

// What stands where the lock should be is not waited for, nor read to an end
// that it may not have.
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
			dir, b := ran(t)
			if _, err := b.Folder.Begin(runner.Manifest{}, nil); err != nil {
				t.Fatal(err)
			}
			lock := filepath.Join(dir, ".lock")
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
			if err := tt.make(lock); err != nil {
				t.Skip(err)
			}
			if run := readRun(t, dir); run.Worker != 0 {
				t.Errorf("worker %d", run.Worker)
			}
		})
	}
}

// A pipe in the place of the folder of attempts is not waited for.
func TestReadHostileAttempts(t *testing.T) {
	dir, _ := ran(t)
	if err := os.MkdirAll(filepath.Join(dir, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "x", "attempts"), 0o600); err != nil {
		t.Skip(err)
	}
	if run := readRun(t, dir); !strings.Contains(fmt.Sprint(run.Unread), "read attempts") {
		t.Errorf("unread: %q", run.Unread)
	}
}

// A folder to work in may be a stranger's too: nothing is written through its
// links, and no pipe is waited for.
func TestOpenHostileFolder(t *testing.T) {
	for _, name := range []string{".lock", "events.jsonl"} {
		for kind, make := range map[string]func(path string) error{
			"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"link": func(path string) error { return os.Symlink("/dev/null", path) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				dir := t.TempDir()
				spoil(t, filepath.Join(dir, "run.json"), "{}")
				if err := make(filepath.Join(dir, name)); err != nil {
					t.Skip(err)
				}
				f, err := runner.Open(dir)
				if err == nil {
					t.Error("opened", f.Close())
				}
				if !errors.Is(err, runner.ErrNotRun) || !strings.Contains(err.Error(), name) {
					t.Errorf("error %v, want ErrNotRun that names %s", err, name)
				}
			})
		}
	}
}
