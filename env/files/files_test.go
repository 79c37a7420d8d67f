package files_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/env/files"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// describe returns the preserved properties of every file below dir.
func describe(t *testing.T, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		description := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			description += fmt.Sprintf(" %d %q", info.ModTime().Unix(), content)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			description += " -> " + target
		}
		seen[strings.TrimPrefix(path, dir+"/")] = description
		return nil
	})
	require.NoError(t, err)
	return seen
}

func write(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(t, os.Chmod(path, mode))
}

func link(t *testing.T, target, path string) {
	t.Helper()
	require.NoError(t, os.Symlink(target, path))
}

// TestRoundTrip packs and unpacks a tree with unusual files.
func TestRoundTrip(t *testing.T) {
	from := filepath.Join(t.TempDir(), "tree")
	write(t, from+"/plain", "text\n", 0o644)
	write(t, from+"/empty", "", 0o600)
	write(t, from+"/run", "#!/bin/sh\n", 0o755)
	write(t, from+"/read only", "x", 0o444)
	write(t, from+"/open to all", "x", 0o777)
	write(t, from+"/-rf", "leading dash", 0o644)
	write(t, from+"/line\nbreak", "newline", 0o644)
	write(t, from+"/\xff\xfe\x80", "not UTF-8", 0o644)
	write(t, from+"/"+strings.Repeat("n", 255), "longest name", 0o644)
	write(t, from+"/"+strings.Repeat("d", 255)+"/"+strings.Repeat("é", 127)+"/x", "deep", 0o644)
	write(t, from+"/..hidden/...", "dots", 0o644)
	write(t, from+"/back\\slash", "x", 0o644)
	write(t, from+"/sealed/in", "x", 0o640)
	bytes := make([]byte, 3<<20)
	for i := range bytes {
		bytes[i] = byte(rand.Uint32())
	}
	write(t, from+"/large", string(bytes), 0o644)
	require.NoError(t, os.Mkdir(from+"/empty folder", 0o701))
	link(t, "plain", from+"/link")
	link(t, "no such place", from+"/dangling")
	link(t, "/etc/passwd", from+"/outside")
	link(t, "..hidden", from+"/to a folder")
	past := time.Unix(1_000_000_000, 0)
	require.NoError(t, os.Chtimes(from+"/plain", past, past))
	require.NoError(t, os.Chmod(from+"/sealed", 0o555))
	want := describe(t, from)
	if len(want) < 20 {
		t.Fatalf("only %d files to pack", len(want))
	}
	for name, old := range map[string]func(to string){
		"into a new folder": func(string) {},
		"over what is there": func(to string) {
			write(t, to+"/tree/plain", "old", 0o444)
			write(t, to+"/elsewhere", "kept", 0o644)
			link(t, "../elsewhere", to+"/tree/run") // Unpack must replace the link and not write to its target
			write(t, to+"/tree/link", "a file where a link goes", 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			to := t.TempDir()
			old(to)
			require.NoError(t, files.Unpack(packed(t, from), to, files.Limits{AllowOutsideLinks: true}))
			assert.NoDiff(t, cmp.Diff(want, describe(t, to+"/tree")), "tree differs (-packed +unpacked)")
			if content, err := os.ReadFile(to + "/elsewhere"); err == nil && string(content) != "kept" {
				t.Errorf("a link was written through: %q", content)
			}
		})
	}
}

func packed(t *testing.T, path string) io.Reader {
	t.Helper()
	var tree bytes.Buffer
	require.NoError(t, files.Pack(&tree, path))
	return &tree
}

func TestPackOne(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/file", "content", 0o640)
	link(t, "file", dir+"/link")
	link(t, dir, dir+"/way")
	for path, want := range map[string]string{
		dir + "/file":     "file",
		dir + "/link":     "link", // the link, not its target
		dir + "/way/file": "file", // links in the directory part are followed
		dir + "/way/.":    "way",
	} {
		h, err := tar.NewReader(packed(t, path)).Next()
		if err != nil || h.Name != want {
			t.Errorf("%s: %+v, %v; want the name %q", path, h, err, want)
		}
	}
	assert.ErrorIs(t, files.Pack(io.Discard, dir+"/none"), fs.ErrNotExist)
	broken := errors.New("no more room")
	assert.ErrorIs(t, files.Pack(failing{broken}, dir), broken)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// entry is one header of a forged stream, with its content.
type entry struct {
	tar.Header
	content string
}

func forged(t *testing.T, entries ...entry) io.Reader {
	t.Helper()
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	for _, e := range entries {
		if e.Size == 0 {
			e.Size = int64(len(e.content))
		}
		if e.Mode == 0 {
			e.Mode = 0o644
		}
		require.NoError(t, w.WriteHeader(&e.Header))
		_, err := io.WriteString(w, e.content)
		require.NoError(t, err)
	}
	if err := w.Flush(); err != nil { // the content is shorter than Size
		return &stream
	}
	require.NoError(t, w.Close())
	return &stream
}

func file(name string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg}, "forged"}
}

func symlink(name, target string) entry {
	return entry{Header: tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}}
}

func special(name string, kind byte) entry {
	return entry{Header: tar.Header{Name: name, Typeflag: kind}}
}

// TestHostileStreams: invalid streams are refused, and no file outside the directory
// changes.
func TestHostileStreams(t *testing.T) {
	hardLink := func(name, target string) entry {
		return entry{Header: tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}}
	}
	for name, entries := range map[string][]entry{
		"absolute name":                 {file("/tmp/forged")},
		"name upwards":                  {file("../forged")},
		"name upwards inside":           {file("a/../../forged")},
		"name upwards, harmless":        {file("a/../b")},
		"no name":                       {file(".")},
		"the same name twice":           {file("a"), file("a")},
		"the same name, written anew":   {file("a"), file("./a")},
		"link to the root":              {symlink("l", "/")},
		"link upwards":                  {symlink("l", "..")},
		"link upwards from a folder":    {symlink("a/l", "../../x")},
		"link through another":          {symlink("a/b/c/l", "../../.."), symlink("m", "a/b/c/l/../x")},
		"empty link":                    {symlink("l", "")},
		"file through a link":           {symlink("l", "there"), file("l/forged")},
		"file through an old link":      {file("old/forged")},
		"folder where an old link is":   {special("old", tar.TypeDir)},
		"folder where a file is":        {special("file", tar.TypeDir)},
		"file where a folder is":        {file("there")},
		"link where a folder is":        {symlink("there", "file")},
		"hard link upwards":             {hardLink("h", "../secret")},
		"hard link, absolute":           {hardLink("h", "/etc/passwd")},
		"hard link through an old link": {hardLink("h", "old/secret")},
		"hard link to a link":           {hardLink("h", "old")},
		"pipe":                          {special("p", tar.TypeFifo)},
		"device":                        {special("d", tar.TypeChar)},
		"block device":                  {special("d", tar.TypeBlock)},
		"unknown type":                  {special("u", 'Z')},
		"too many":                      {file("1"), file("2"), file("3"), file("4"), file("5"), file("6")},
		"too large":                     {file("1"), {tar.Header{Name: "x", Typeflag: tar.TypeReg}, strings.Repeat("x", 1000)}},
		"a size of exabytes":            {{tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 1 << 60}, "x"}},
		"deep":                          {file(strings.Repeat("d/", files.MaxDepth+1) + "x")},
	} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			write(t, outside+"/secret", "secret", 0o600)
			dir := outside + "/dir"
			write(t, dir+"/file", "kept", 0o644)
			write(t, dir+"/there/x", "kept", 0o644)
			link(t, outside, dir+"/old")
			before := describe(t, outside)
			err := files.Unpack(forged(t, entries...), dir, files.Limits{Entries: 5, Bytes: 1000})
			assert.ErrorIs(t, err, files.ErrRefused)
			after := describe(t, outside)
			for path := range after {
				if strings.HasPrefix(path, "dir/") && before[path] == "" {
					delete(after, path) // unpacked before the error
				}
			}
			assert.NoDiff(t, cmp.Diff(before, after), "existing files have changed (-before +after)")
			noTemporary(t, dir)
		})
	}
}

func noTemporary(t *testing.T, dir string) {
	t.Helper()
	for path := range describe(t, dir) {
		if strings.HasPrefix(filepath.Base(path), ".mini-") {
			t.Errorf("%s was left behind", path)
		}
	}
}

func TestHardLinks(t *testing.T) {
	dir := t.TempDir()
	stream := forged(t, file("a/x"), entry{Header: tar.Header{Name: "b/y", Typeflag: tar.TypeLink, Linkname: "a/x"}})
	require.NoError(t, files.Unpack(stream, dir, files.Limits{}))
	x, err1 := os.Stat(dir + "/a/x")
	y, err2 := os.Stat(dir + "/b/y")
	if err1 != nil || err2 != nil || !os.SameFile(x, y) {
		t.Errorf("a/x and b/y are not one file (%v, %v)", err1, err2)
	}
	noTemporary(t, dir)
}

// TestTruncated truncates a stream at hundreds of offsets: all files unpacked before
// are complete.
func TestTruncated(t *testing.T) {
	from := t.TempDir() + "/d"
	write(t, from+"/a", strings.Repeat("a", 700), 0o644)
	write(t, from+"/b", strings.Repeat("b", 700), 0o644)
	whole, err := io.ReadAll(packed(t, from))
	require.NoError(t, err)
	want := describe(t, from)
	for n := 0; n <= len(whole)-1024; n += 8 { // the end mark is 1024 bytes, and blocks end at a multiple of 8
		to := t.TempDir()
		assert.Error(t, files.Unpack(bytes.NewReader(whole[:n]), to, files.Limits{}), "%d of %d bytes were unpacked", n, len(whole))
		for path, description := range describe(t, to) {
			name, _ := strings.CutPrefix(path, "d/")
			if path != "d" && description != want[name] {
				t.Errorf("after %d bytes %s is %.40q, want %.40q", n, path, description, want[name])
			}
		}
	}
}

// FuzzUnpack: no stream changes files outside the directory.
func FuzzUnpack(f *testing.F) {
	dir := f.TempDir()
	require.NoError(f, os.WriteFile(dir+"/x", []byte("x"), 0o600))
	var stream bytes.Buffer
	require.NoError(f, files.Pack(&stream, dir))
	f.Add(stream.Bytes())
	f.Add(make([]byte, 1024))
	f.Fuzz(func(t *testing.T, stream []byte) {
		top := t.TempDir()
		write(t, top+"/dir/file", "x", 0o600)
		link(t, "..", top+"/dir/up")
		_ = files.Unpack(bytes.NewReader(stream), top+"/dir", files.Limits{Bytes: 1 << 20, Entries: 100})
		list, err := os.ReadDir(top)
		if err != nil || len(list) != 1 {
			t.Errorf("the parent directory has %v, %v", list, err)
		}
	})
}
