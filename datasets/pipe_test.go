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
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // each Load reads the rows twice, but the pipe has them only once
				set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.Selection{Slice: "1:"}.Apply)
				if err != nil || len(set.IDs) != 2 || len(set.Instances) != 1 {
					t.Errorf("%+v, %v", set, err)
				}
			}
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
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
