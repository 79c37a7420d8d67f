//go:build unix

package datasets_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// fifo returns the path of a named pipe. /dev/stdin and <(command) may be pipes, too.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	return path
}

func TestPipe(t *testing.T) {
	for name, text := range map[string]string{
		"lines": line("a") + line("b"), "zipped": zipped(t, line("a")+line("b")), "parquet": string(table(t, plainRows(2))),
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			t.Setenv("TMPDIR", tmp)
			path := fifo(t)
			var g errgroup.Group
			g.Go(func() error { return os.WriteFile(path, []byte(text), 0o600) })
			src, err := datasets.Local(path, "")
			require.NoError(t, err)
			for range 2 { // each Load reads the rows twice, but the pipe has them only once
				set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.Selection{Slice: "1:"}.Apply)
				if err != nil || len(set.IDs) != 2 || len(set.Instances) != 1 {
					t.Errorf("%+v, %v", set, err)
				}
			}
			assert.NoError(t, g.Wait())
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestPipeWithoutEnd checks that reading stops when the context ends, although the writer
// keeps the pipe open.
func TestPipeWithoutEnd(t *testing.T) {
	path := fifo(t)
	src, err := datasets.Local(path, "")
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	var g errgroup.Group
	g.Go(func() error {
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = w.WriteString(line("a"))
		cancel(enough) // the open has returned, so there is a reader
		<-t.Context().Done()
		return errors.Join(err, w.Close())
	})
	t.Cleanup(func() { // the test's context has ended
		if err := g.Wait(); err != nil && !errors.Is(err, syscall.EPIPE) {
			t.Error(err)
		}
	})
	if _, err := datasets.Load(ctx, []datasets.Source{src}, datasets.NoRows); !errors.Is(err, enough) || err.Error() != "read "+path+": enough" {
		t.Errorf("got %v, want %v", err, enough)
	}
}

func TestDevicesAreNoDatasets(t *testing.T) {
	if _, err := datasets.Local(os.DevNull, ""); !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), "not a file, a directory") {
		t.Errorf("got %v", err)
	}
}

// TestPipeWithoutWriter checks that opening a pipe, which blocks until there is a writer,
// stops when the context ends.
func TestPipeWithoutWriter(t *testing.T) {
	path := fifo(t)
	t.Cleanup(func() { // a writer ends the blocked open
		if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = w.Close()
		}
	})
	src, err := datasets.Local(path, "")
	require.NoError(t, err)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(50*time.Millisecond, func() { cancel(cause) }) // most likely it waits by then
	defer timer.Stop()
	_, err = datasets.Load(ctx, []datasets.Source{src}, datasets.NoRows)
	assert.ErrorIs(t, err, cause)
}

// asStdin makes a file the standard input of the test.
func asStdin(t *testing.T, f *os.File) {
	t.Helper()
	before := os.Stdin
	os.Stdin = f
	t.Cleanup(func() { os.Stdin = before; _ = f.Close() })
}

// blocking returns a pipe in blocking mode, as a program gets it from a shell: a deadline
// cannot interrupt a read.
func blocking(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	return os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
}

// TestStdinIsOpen reads standard input from the open file. Opening its path again would
// block: the writer of the pipe has closed it.
func TestStdinIsOpen(t *testing.T) {
	for _, name := range []string{datasets.Stdin, "/dev/stdin", "/dev/fd/0"} {
		path := fifo(t)
		w, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		r, err := os.Open(path)
		require.NoError(t, err)
		asStdin(t, r)
		_, err = w.WriteString(line("a") + line("b"))
		if err = errors.Join(err, w.Close(), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
		src, err := datasets.Local(name, "")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		set, err := datasets.Load(ctx, []datasets.Source{src}, datasets.Selection{Slice: "1:"}.Apply)
		cancel()
		if err != nil || len(set.IDs) != 2 || set.Sources[0].Name != name {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
}

func TestStdinThatBlocks(t *testing.T) {
	r, w := blocking(t)
	asStdin(t, r)
	src, err := datasets.Local(datasets.Stdin, "")
	require.NoError(t, err)
	_, err = w.WriteString(line("a"))
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.NoRows); err != nil || len(set.IDs) != 1 {
		t.Errorf("%v, %v", set.IDs, err)
	}
}

// TestStdinWithoutEnd checks that reading stops when the context ends, although the writer
// keeps the pipe open.
func TestStdinWithoutEnd(t *testing.T) {
	r, w := blocking(t)
	t.Cleanup(func() { _ = w.Close() }) // ends the blocked read
	asStdin(t, r)
	src, err := datasets.Local(datasets.Stdin, "")
	require.NoError(t, err)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(50*time.Millisecond, func() { cancel(cause) }) // most likely it waits by then
	defer timer.Stop()
	_, err = datasets.Load(ctx, []datasets.Source{src}, datasets.NoRows)
	assert.ErrorIs(t, err, cause)
}
