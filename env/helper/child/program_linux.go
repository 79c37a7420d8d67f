package child

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/minibench/mini/env/scratch"
)

// Program is a helper ready to be started any number of times, at once too.
type Program struct {
	file *os.File // for reading only, without a name
	hash string
	tool tool
}

// Load takes the helper's binary and its SHA-256 in hex, see package binaries.
func Load(binary []byte, hash string) (*Program, error) {
	file, err := inMemory(binary)
	if err != nil { // a kernel that lets no such file be run
		file, err = onDisk(binary)
	}
	if err != nil {
		return nil, fmt.Errorf("load helper: %w", err)
	}
	dir, err := scratch.Plan("tool")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load helper: %w", err), file.Close())
	}
	return &Program{file: file, hash: hash, tool: tool{program: file, dir: dir}}, nil
}

// ToolDir is the folder of this machine's that has mini-tool from the first
// command that may ask on, and until Close. It is not there before MakeToolDir,
// or that command.
func (p *Program) ToolDir() string { return p.tool.dir }

// MakeToolDir makes the folder, empty at first, for those who have to show it to
// a sandbox before they know what will run there.
func (p *Program) MakeToolDir() error {
	p.tool.mu.Lock()
	defer p.tool.mu.Unlock()
	return p.tool.makeDir()
}

// Close gives the file up, and removes the folder. What runs keeps running.
func (p *Program) Close() error { return errors.Join(p.file.Close(), p.tool.close()) }

// inMemory seals what it has written, so that nobody who gets hold of the file
// can change what others run.
func inMemory(binary []byte) (_ *os.File, err error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("mini-helper", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3, where every such file can be run
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

// onDisk makes a file that has lost its name before anybody is told of it.
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
