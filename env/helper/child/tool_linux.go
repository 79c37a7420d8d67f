package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/scratch"
)

// tool is mini-tool in a folder of its own: the helper's program again, under the
// name by which commands call it. A name needs a file, so this one is on the disk;
// it is made when the first command may ask, and costs nothing until then.
type tool struct {
	program *os.File // see Program
	dir     string

	mu     sync.Mutex
	made   bool // the folder is there
	placed bool // and mini-tool in it
	closed bool
}

// makeDir makes the folder, once. The lock is held.
func (t *tool) makeDir() error {
	if t.closed {
		return env.ErrClosed
	}
	if t.made {
		return nil
	}
	err := scratch.Make(t.dir)
	t.made = err == nil
	return err
}

// place makes sure that mini-tool is there.
func (t *tool) place() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.placed {
		return nil
	}
	err := t.makeDir()
	if err == nil {
		err = t.copy(filepath.Join(t.dir, env.ToolProgram))
	}
	if err != nil {
		return fmt.Errorf("put %s into %s: %w", env.ToolProgram, t.dir, err)
	}
	t.placed = true
	return nil
}

func (t *tool) copy(name string) error {
	// While the file can be written through some process, it cannot be run: none
	// may be forked that inherits it, be it for a moment.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	info, err := t.program.Stat()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o500) //nolint:gosec // a program that is to be run
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.NewSectionReader(t.program, 0, info.Size()))
	return errors.Join(err, f.Close(), os.Chmod(t.dir, 0o500)) //nolint:gosec // a folder
}

// close removes the folder.
func (t *tool) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if !t.made {
		return nil
	}
	t.made, t.placed = false, false
	return scratch.Remove(t.dir)
}
