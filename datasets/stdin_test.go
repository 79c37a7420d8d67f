//go:build unix

package datasets_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/minibench/mini/datasets"
)

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
		if err != nil {
			t.Fatal(err)
		}
		r, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		asStdin(t, r)
		_, err = w.WriteString(line("a") + line("b"))
		if err = errors.Join(err, w.Close(), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
		src, err := datasets.Local(name, "")
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(50*time.Millisecond, func() { cancel(cause) }) // most likely it waits by then
	defer timer.Stop()
	if _, err := datasets.Load(ctx, []datasets.Source{src}, datasets.NoRows); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}
