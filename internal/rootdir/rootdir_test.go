package rootdir_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/internal/rootdir"
)

// TestLinksOut checks that no method follows a link out of the folder, wherever it is
// in the path.
func TestLinksOut(t *testing.T) {
	for name, work := range map[string]func(d *rootdir.Dir, path string) error{
		"WriteFile": func(d *rootdir.Dir, path string) error { return d.WriteFile(path, []byte("new")) },
		"Replace": func(d *rootdir.Dir, path string) error {
			return d.Replace(path, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err })
		},
		"MkdirAll":  func(d *rootdir.Dir, path string) error { return d.MkdirAll(filepath.Join(filepath.Dir(path), "made")) },
		"MkdirTemp": func(d *rootdir.Dir, path string) error { _, err := d.MkdirTemp(filepath.Dir(path), "x"); return err },
		"Remove":    func(d *rootdir.Dir, path string) error { return d.Remove(path) },
		"RemoveAll": func(d *rootdir.Dir, path string) error { return d.RemoveAll(path) },
		"Rename":    func(d *rootdir.Dir, path string) error { return d.Rename(path, filepath.Join(d.Path(), "taken")) },
		"Open":      func(d *rootdir.Dir, path string) error { _, err := d.Open(path); return err },
		"ReadFile":  func(d *rootdir.Dir, path string) error { _, err := d.ReadFile(path, 100); return err },
		"ReadDir":   func(d *rootdir.Dir, path string) error { _, err := d.ReadDir(filepath.Dir(path)); return err },
		"Lstat":     func(d *rootdir.Dir, path string) error { _, err := d.Lstat(path); return err },
	} {
		for _, link := range []string{"a", "a/b", "a/b/c"} {
			for _, relative := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", link, " ", relative), func(t *testing.T) {
					top := t.TempDir()
					outside := filepath.Join(top, "outside")
					put(t, filepath.Join(outside, "b/c/file"), "old")
					put(t, filepath.Join(outside, "c/file"), "old")
					put(t, filepath.Join(outside, "file"), "old")
					run := filepath.Join(top, "run")
					require.NoError(t, os.MkdirAll(filepath.Join(run, filepath.Dir(link)), 0o700))
					target := outside
					if relative {
						var err error
						if target, err = filepath.Rel(filepath.Join(run, filepath.Dir(link)), outside); err != nil {
							t.Fatal(err)
						}
					}
					require.NoError(t, os.Symlink(target, filepath.Join(run, link)))
					d, err := rootdir.Open(run)
					require.NoError(t, err)
					defer d.Close()
					err = work(d, filepath.Join(run, "a/b/c/file"))
					if out, ok := errors.AsType[*rootdir.LinkError](err); !ok || out.Path != filepath.Join(run, link) {
						t.Errorf("error %v, want a LinkError for %s", err, link)
					}
					n := 0
					err = filepath.WalkDir(outside, func(path string, e fs.DirEntry, err error) error {
						if n++; err == nil && !e.IsDir() {
							data, readErr := os.ReadFile(path)
							if err = readErr; string(data) != "old" {
								t.Errorf("%s has %q", path, data)
							}
						}
						return err
					})
					if err != nil || n != 7 {
						t.Errorf("%d files and folders are outside, want 7; %v", n, err)
					}
				})
			}
		}
	}
}

// TestLinksInside checks that no method writes through a link within the folder.
// Reading through it, and replacing the link itself, is allowed.
func TestLinksInside(t *testing.T) {
	for name, work := range map[string]func(d *rootdir.Dir, path string) error{
		"WriteFile": func(d *rootdir.Dir, path string) error { return d.WriteFile(path, []byte("new")) },
		"Replace": func(d *rootdir.Dir, path string) error {
			return d.Replace(path, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err })
		},
		"OpenFile": func(d *rootdir.Dir, path string) error {
			f, err := d.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"MkdirAll":    func(d *rootdir.Dir, path string) error { return d.MkdirAll(filepath.Join(filepath.Dir(path), "made")) },
		"MkdirTemp":   func(d *rootdir.Dir, path string) error { _, err := d.MkdirTemp(filepath.Dir(path), "x"); return err },
		"Remove":      func(d *rootdir.Dir, path string) error { return d.Remove(path) },
		"RemoveAll":   func(d *rootdir.Dir, path string) error { return d.RemoveAll(path) },
		"Rename from": func(d *rootdir.Dir, path string) error { return d.Rename(path, filepath.Join(d.Path(), "taken")) },
		"Rename to":   func(d *rootdir.Dir, path string) error { return d.Rename(filepath.Join(d.Path(), "other"), path) },
		"CheckChange": func(d *rootdir.Dir, path string) error { return d.CheckWritable(path) },
	} {
		for link, target := range map[string]string{"a": "inside", "a/b": "../inside/b", "a/b/c": "../../inside/b/c", "a/b/up": "../.."} {
			t.Run(name+" "+link, func(t *testing.T) {
				run := t.TempDir()
				put(t, filepath.Join(run, "inside/b/c/file"), "old")
				put(t, filepath.Join(run, "other"), "old")
				path := filepath.Join(run, "a/b/c/file")
				if link == "a/b/up" {
					path = filepath.Join(run, link, "inside/b/c/file")
				}
				require.NoError(t, errors.Join(os.MkdirAll(filepath.Join(run, filepath.Dir(link)), 0o700), os.Symlink(target, filepath.Join(run, link))))
				d, err := rootdir.Open(run)
				require.NoError(t, err)
				defer d.Close()
				err = work(d, path)
				if found, ok := errors.AsType[*rootdir.LinkError](err); !ok || !found.Inside || found.Path != filepath.Join(run, link) {
					t.Errorf("error %v, want one that names %s", err, link)
				}
				if data, err := d.ReadFile(path, 100); err != nil || string(data) != "old" {
					t.Errorf("the file has %q, %v", data, err)
				}
				if entries, err := os.ReadDir(filepath.Join(run, "inside/b/c")); err != nil || len(entries) != 1 {
					t.Errorf("left: %v, %v", entries, err)
				}
				if err := d.Remove(filepath.Join(run, link)); err != nil {
					t.Errorf("remove the link: %v", err)
				}
			})
		}
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	put(t, outside, "old")
	d, err := rootdir.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	path := filepath.Join(dir, "new/file")
	require.NoError(t, d.WriteFile(path, []byte("one")))
	require.NoError(t, os.Chmod(path, 0o600))
	if err := d.Replace(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, io.ErrShortWrite)
	}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "one" {
		t.Errorf("a failure leaves %q, %v", data, err)
	}
	assert.NoError(t, d.WriteFile(path, []byte("two")))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the permissions are %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(outside, link))
	assert.NoError(t, d.WriteFile(link, []byte("three")))
	if data, err := os.ReadFile(outside); err != nil || string(data) != "old" {
		t.Errorf("outside has %q, %v", data, err)
	}
	if data, err := d.ReadFile(link, 5); err != nil || string(data) != "three" {
		t.Errorf("the file in place of the link has %q, %v", data, err)
	}
	_, err = d.ReadFile(link, 4)
	assert.Error(t, err, "a file that is too large")
	assert.Error(t, d.WriteFile(outside, nil), "a path that is not below the folder was written")
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
