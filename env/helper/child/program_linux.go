package child

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/minibench/mini/env/scratch"
)

// Program is a helper binary that can be started any number of times, also
// concurrently.
type Program struct {
	file *os.File // read-only, without a name
	hash string
	tool tool
}

// Load returns a Program for a helper binary and its SHA-256 in hex (see package
// binaries).
func Load(binary []byte, hash string) (*Program, error) {
	file, err := inMemory(binary)
	if err != nil { // the kernel does not allow executing such files
		file, err = onDisk(binary)
	}
	if err != nil {
		return nil, fmt.Errorf("load helper: %w", err)
	}
	dir, err := scratch.NewPath("tool")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load helper: %w", err), file.Close())
	}
	return &Program{file: file, hash: hash, tool: tool{program: file, dir: dir}}, nil
}

// ToolDir returns the directory on the host for mini-tool. It exists after MakeToolDir
// or the first command that may call tools, until Close.
func (p *Program) ToolDir() string { return p.tool.dir }

// MakeToolDir creates the directory, empty at first, for sandboxes that mount it
// before they run commands.
func (p *Program) MakeToolDir() error {
	p.tool.mu.Lock()
	defer p.tool.mu.Unlock()
	return p.tool.makeDir()
}

// Close closes the file and removes the directory. Running helpers are not affected.
func (p *Program) Close() error { return errors.Join(p.file.Close(), p.tool.close()) }

// inMemory creates a sealed memfd, so that no process can modify the program that
// others run.
func inMemory(binary []byte) (_ *os.File, err error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("mini-helper", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3, where every memfd is executable
		fd, err = unix.MemfdCreate("mini-helper", flags)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "mini-helper")
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(binary); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		return nil, err
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(fd))
}

// onDisk creates a file and deletes its name before it returns.
func onDisk(binary []byte) (_ *os.File, err error) {
	w, err := os.CreateTemp("", "mini-helper-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close(), os.Remove(w.Name())) }()
	if _, err := w.Write(binary); err != nil {
		return nil, err
	}
	if err := w.Chmod(0o500); err != nil {
		return nil, err
	}
	return os.Open(w.Name())
}
