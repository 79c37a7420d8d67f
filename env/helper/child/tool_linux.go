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

// tool is mini-tool in its own directory: a copy of the helper's program under the name
// by which commands call it. The name requires a file on disk, which is created for the
// first command that may call tools.
type tool struct {
	program *os.File // see Program
	dir     string

	mu        sync.Mutex
	created   bool // the directory exists
	installed bool // mini-tool exists
	closed    bool
}

// makeDir creates the directory, once. The caller holds the lock.
func (t *tool) makeDir() error {
	if t.closed {
		return env.ErrClosed
	}
	if t.created {
		return nil
	}
	err := scratch.Create(t.dir)
	t.created = err == nil
	return err
}

// install creates mini-tool, once.
func (t *tool) install() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.installed {
		return nil
	}
	err := t.makeDir()
	if err == nil {
		err = t.copy(filepath.Join(t.dir, env.ToolProgram))
	}
	if err != nil {
		return fmt.Errorf("install %s in %s: %w", env.ToolProgram, t.dir, err)
	}
	t.installed = true
	return nil
}

func (t *tool) copy(name string) error {
	// A file that is open for writing in any process cannot be executed. So no process
	// may be forked meanwhile, because it would inherit the descriptor until it calls
	// exec.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	info, err := t.program.Stat()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o500) //nolint:gosec // an executable
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.NewSectionReader(t.program, 0, info.Size()))
	return errors.Join(err, f.Close(), os.Chmod(t.dir, 0o500)) //nolint:gosec // a folder
}

// close removes the directory.
func (t *tool) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if !t.created {
		return nil
	}
	t.created, t.installed = false, false
	return scratch.Remove(t.dir)
}
