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

// entry is one file of a tar stream. The name of a directory ends with a slash, and a
// link has no mode.
type entry struct {
	Name    string
	Mode    int64
	Link    string
	Content string
}

// tarStream returns a tar stream of entries.
func tarStream(t *testing.T, entries []entry) io.Reader {
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

func (b sandbox) put(f env.Files, dir string, entries []entry) {
	b.t.Helper()
	if err := f.Put(b.t.Context(), dir, tarStream(b.t, entries)); err != nil {
		b.t.Fatal(err)
	}
}

func (b sandbox) get(f env.Files, path string) []entry {
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

// failingReader returns an error from each Read.
type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// failingWriter returns an error from each Write.
type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// notifyReader is an empty reader that calls a function when it is read.
type notifyReader struct{ call func() }

func (c notifyReader) Read([]byte) (int, error) {
	c.call()
	return 0, io.EOF
}

// notifyWriter discards all data and calls a function for each Write.
type notifyWriter struct{ call func() }

func (w notifyWriter) Write(p []byte) (int, error) {
	w.call()
	return len(p), nil
}
