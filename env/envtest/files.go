package envtest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/env"
)

// fileTransfer: files are copied in and out unchanged.
func fileTransfer(t *testing.T, s suite) {
	s.needs(t, FileTransfer)
	b := s.start(t)
	f, ok := b.Environment.(env.Files)
	if !ok {
		t.Fatal("the environment does not implement env.Files; use WithoutCapability(FileTransfer)")
	}
	dir := b.tempDir()
	t.Run("one file", func(t *testing.T) {
		// Usually 255 bytes; some overlay file systems allow fewer.
		longest, err := strconv.Atoi((sandbox{b, t}).sh("stat -f -c %l " + dir))
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct{ name, content string }{
			"empty":                      {"empty", ""},
			"text":                       {"text", "a\nb"},
			"every byte":                 {"bytes", allBytes()},
			"newline":                    {"line\nbreak\n", "x"},
			"not UTF-8":                  {"\xff\xfe\x80", "x"},
			"leading dash":               {"-rf", "x"},
			"spaces":                     {"  a b  ", "x"},
			"quotes":                     {`"'$(x)\`, "x"},
			"dots":                       {"...", "x"},
			"longest name":               {strings.Repeat("n", longest), "x"},
			"a megabyte":                 {"megabyte", strings.Repeat("0123456789abcdef", 1<<16)},
			"exactly a page of the pipe": {"64k", strings.Repeat("x", 64<<10)},
		} {
			t.Run(name, func(t *testing.T) {
				files := sandbox{b, t}
				want := []entry{{Name: c.name, Mode: 0o644, Content: c.content}}
				files.put(f, dir+"/one", want)
				if diff := cmp.Diff(want, files.get(f, dir+"/one/"+c.name)); diff != "" {
					t.Errorf("file differs (-put +got):\n%.2000s", diff)
				}
				got := files.run(env.Command{Script: `cat <"$F"`, Env: map[string]string{"F": dir + "/one/" + c.name}, OutputLimit: 2 << 20})
				if string(got.Output) != c.content {
					t.Errorf("commands see %d bytes, want %d: %.100q", len(got.Output), len(c.content), got.Output)
				}
			})
		}
	})
	t.Run("modes", func(t *testing.T) {
		b := sandbox{b, t}
		var put []entry
		var want strings.Builder
		for _, mode := range []int64{0o400, 0o444, 0o600, 0o644, 0o666, 0o700, 0o755, 0o777} {
			put = append(put, entry{Name: fmt.Sprintf("%o", mode), Mode: mode})
			fmt.Fprintf(&want, "%o\n", mode)
		}
		// A set-uid bit is not preserved.
		b.put(f, dir+"/modes", append(put, entry{Name: "755s", Mode: 0o6755}))
		if got := b.sh("umask 0; cd " + dir + "/modes && stat -c %a [0-9][0-9][0-9] && stat -c %a 755s"); got != want.String()+"755" {
			t.Errorf("modes are %q, want %q", got, want.String()+"755")
		}
	})
	t.Run("links", func(t *testing.T) {
		b := sandbox{b, t}
		put := []entry{
			{Name: "file", Mode: 0o644, Content: "x"},
			{Name: "to file", Link: "file"},
			{Name: "dangling", Link: "no such place"},
			{Name: "absolute", Link: "/etc/hostname"},
			{Name: "upwards", Link: "../../.."},
		}
		b.put(f, dir+"/links", put)
		if got := b.sh("cd " + dir + "/links; readlink 'to file' dangling absolute upwards"); got != "file\nno such place\n/etc/hostname\n../../.." {
			t.Errorf("links are %q", got)
		}
		if diff := cmp.Diff([]entry{{Name: "dangling", Link: "no such place"}}, b.get(f, dir+"/links/dangling")); diff != "" {
			t.Errorf("the link was not copied as a link (-want +got):\n%s", diff)
		}
	})
	t.Run("links in the path are not followed", func(t *testing.T) {
		b := sandbox{b, t}
		b.sh("mkdir -p " + dir + "/way/real && ln -s real " + dir + "/way/door && echo old >" + dir + "/way/target && ln -s target " + dir + "/way/file")
		if err := f.Put(t.Context(), dir+"/way", tarStream(t, []entry{{Name: "door/forged", Mode: 0o644}})); err == nil {
			t.Error("a file was written through a link")
		}
		b.put(f, dir+"/way", []entry{{Name: "file", Mode: 0o600, Content: "new"}})
		if got := b.sh("cd " + dir + "/way; ls real; cat target file; test -L file && echo link || true"); got != "old\nnew" {
			t.Errorf("target and file are %q", got)
		}
	})
	t.Run("a tree", func(t *testing.T) {
		b := sandbox{b, t}
		b.sh("mkdir -p " + dir + "/tree/a/b/c " + dir + "/tree/empty && cd " + dir + "/tree && echo 1 >a/1 && echo 2 >a/b/2 && ln -s ../1 a/b/l && chmod 755 a/1 && chmod 644 a/b/2 && mkfifo a/pipe && chmod 755 a a/b a/b/c empty .")
		want := []entry{
			{Name: "tree/", Mode: 0o755},
			{Name: "tree/a/", Mode: 0o755},
			{Name: "tree/a/1", Mode: 0o755, Content: "1\n"},
			{Name: "tree/a/b/", Mode: 0o755},
			{Name: "tree/a/b/2", Mode: 0o644, Content: "2\n"},
			{Name: "tree/a/b/c/", Mode: 0o755},
			{Name: "tree/a/b/l", Link: "../1"},
			{Name: "tree/empty/", Mode: 0o755},
		}
		got := b.get(f, dir+"/tree")
		if diff := cmp.Diff(want, sorted(got)); diff != "" {
			t.Errorf("tree differs (-want +got):\n%s", diff)
		}
		b.put(f, dir+"/copy", got)
		if got := b.sh("cd " + dir + "; rm tree/a/pipe; diff -r --no-dereference tree copy/tree && echo same"); got != "same" {
			t.Errorf("put back: %s", got)
		}
	})
	t.Run("failures", func(t *testing.T) { failedTransfers(sandbox{b, t}, f, dir) })
	t.Run("cancelled", func(t *testing.T) { cancelledTransfers(sandbox{b, t}, f, dir) })
	t.Run("between commands", func(t *testing.T) {
		b := sandbox{b, t}
		ended := make(chan error, 1)
		go func() {
			r, err := b.Execute(t.Context(), env.Command{Script: "sleep 0.3; echo late", Timeout: waitLimit})
			if err == nil && string(r.Output) != "late\n" {
				err = fmt.Errorf("output %q, exit code %d", r.Output, r.ExitCode)
			}
			ended <- err
		}()
		for range 10 {
			b.put(f, dir, []entry{{Name: "beside", Mode: 0o644}})
			b.get(f, dir+"/beside")
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// failedTransfers: invalid transfers return an error, and the sandbox stays usable.
func failedTransfers(b sandbox, f env.Files, dir string) {
	t := b.t
	if err := f.Get(t.Context(), dir+"/none", io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("get a missing file: %v, want fs.ErrNotExist", err)
	}
	b.sh("mkdir " + dir + "/folder; mkfifo " + dir + "/pipe; echo x >" + dir + "/file")
	if err := f.Get(t.Context(), dir+"/pipe", io.Discard); err == nil {
		t.Error("get of a pipe succeeded")
	}
	broken := errors.New("broken")
	for name, put := range map[string]struct {
		dir  string
		tree io.Reader
	}{
		"not a tar stream":    {dir, strings.NewReader(strings.Repeat("hello", 1000))},
		"into a file":         {dir + "/file", tarStream(t, []entry{{Name: "x", Mode: 0o644}})},
		"a stream that fails": {dir, io.MultiReader(io.LimitReader(tarStream(t, []entry{{Name: "half", Mode: 0o644, Content: strings.Repeat("x", 300_000)}}), 200_000), failingReader{broken})},
	} {
		err := f.Put(t.Context(), put.dir, put.tree)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if name == "a stream that fails" && !errors.Is(err, broken) {
			t.Errorf("%s: error %v, want the reader's", name, err)
		}
		if got := b.sh("cd " + dir + "; ls -A | grep -e half -e mini- || echo none"); got != "none" {
			t.Errorf("%s: left behind: %s", name, got)
		}
	}
	// A failed Put must not wait for the end of the stream.
	if err := f.Put(t.Context(), dir, io.MultiReader(tarStream(t, []entry{{Name: "../up"}}), zeros{})); err == nil {
		t.Error("an endless stream was accepted")
	}
	if err := f.Get(t.Context(), dir+"/file", failingWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("get into a writer that fails: %v, want its error", err)
	}
}

// cancelledTransfers: the end of a context ends a transfer, and the sandbox stays
// usable.
func cancelledTransfers(b sandbox, f env.Files, dir string) {
	t := b.t
	stop := errors.New("the user said stop")
	b.sh("truncate -s 50000000 " + dir + "/zeros")
	for name, transfer := range map[string]func(context.Context, func()) error{
		"put": func(ctx context.Context, started func()) error {
			var head bytes.Buffer
			if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "endless", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1 << 33}); err != nil {
				t.Fatal(err)
			}
			return f.Put(ctx, dir, io.MultiReader(&head, io.LimitReader(zeros{}, 5<<20), notifyReader{started}, zeros{}))
		},
		"get": func(ctx context.Context, started func()) error {
			return f.Get(ctx, dir+"/zeros", notifyWriter{started})
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if err := transfer(ctx, func() { cancel(stop) }); !errors.Is(err, stop) {
			t.Errorf("%s: error %v, want the cause", name, err)
		}
		cancel(nil)
		if got := b.sh("cd " + dir + "; ls -A | grep -e endless -e mini- || echo none"); got != "none" {
			t.Errorf("%s: left behind: %s", name, got)
		}
		if err := transfer(ctx, func() {}); !errors.Is(err, stop) {
			t.Errorf("%s with an ended context: %v, want the cause", name, err)
		}
	}
}
