package envtest

import (
	"archive/tar"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/env"
)

// entry is one file of a tar stream. A folder's name ends with a slash, and a
// link has no mode.
type entry struct {
	Name    string
	Mode    int64
	Link    string
	Content string
}

// stream is a tar stream of entries.
func stream(t *testing.T, entries []entry) io.Reader {
	t.Helper()
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	for _, e := range entries {
		h := &tar.Header{Name: e.Name, Typeflag: tar.TypeReg, Mode: e.Mode, Size: int64(len(e.Content))}
		switch {
		case strings.HasSuffix(e.Name, "/"):
			h.Typeflag = tar.TypeDir
		case e.Link != "":
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.Link, 0o777
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &tree
}

func (b box) put(f env.Files, dir string, entries []entry) {
	b.t.Helper()
	if err := f.Put(b.t.Context(), dir, stream(b.t, entries)); err != nil {
		b.t.Fatal(err)
	}
}

func (b box) get(f env.Files, path string) []entry {
	b.t.Helper()
	var tree bytes.Buffer
	if err := f.Get(b.t.Context(), path, &tree); err != nil {
		b.t.Fatal(err)
	}
	var entries []entry
	r := tar.NewReader(&tree)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return entries
		}
		content, err2 := io.ReadAll(r)
		if err != nil || err2 != nil {
			b.t.Fatal(err, err2)
		}
		e := entry{Name: h.Name, Mode: h.Mode, Link: h.Linkname, Content: string(content)}
		if h.Typeflag == tar.TypeSymlink {
			e.Mode = 0
		}
		entries = append(entries, e)
	}
}

func sorted(entries []entry) []entry {
	s := slices.Clone(entries)
	slices.SortFunc(s, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	return s
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// failing fails each read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// failingWriter fails each write.
type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// calling is an empty reader that tells when it is reached.
type calling struct{ call func() }

func (c calling) Read([]byte) (int, error) {
	c.call()
	return 0, io.EOF
}

// writing takes everything and tells of it.
type writing struct{ call func() }

func (w writing) Write(p []byte) (int, error) {
	w.call()
	return len(p), nil
}
