package filetools

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// target is a file to replace or create.
type target struct {
	name string      // as given by the caller
	path string      // with symbolic links resolved
	info fs.FileInfo // nil if the file does not exist
}

func (t target) exists() bool { return t.info != nil }

// maxLinks is the number of successive symbolic links that resolveTarget rejects as too
// many; the kernel follows 40.
const maxLinks = 40

// resolveTarget follows the symbolic links of a name. If the last one is dangling, the
// target is the missing file, so that a write creates it and keeps the link.
func resolveTarget(name string) (target, error) {
	t := target{name: name, path: name}
	for range maxLinks {
		info, err := os.Lstat(t.path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(t.path, "/"):
			return t, nil
		case errors.Is(err, fs.ErrNotExist):
			return t, fmt.Errorf("%s: a name that ends in / is a folder's", quoted(name))
		case err != nil:
			return t, fileError(name, err)
		case info.Mode()&fs.ModeSymlink == 0:
			t.info = info
			return t, checkRegular(name, info)
		}
		linkTarget, err := os.Readlink(t.path)
		if err != nil {
			return t, fileError(name, err)
		}
		if !filepath.IsAbs(linkTarget) {
			// The path is not cleaned, because the meaning of .. depends on symbolic
			// links in it.
			linkTarget = dirOf(t.path) + "/" + linkTarget
		}
		t.path = linkTarget
	}
	return t, fmt.Errorf("%s: too many symbolic links", quoted(name))
}

// dirOf returns the directory part of a path without cleaning it.
func dirOf(path string) string {
	i := strings.LastIndexByte(path, '/')
	switch {
	case i < 0:
		return "."
	case i == 0:
		return "/."
	}
	return path[:i]
}

// replace atomically replaces the content of the file. It keeps the mode, and the owner
// if permitted; a new file gets the default mode and owner.
func (t target) replace(content []byte) (err error) {
	if t.exists() {
		if err := t.checkWritable(); err != nil {
			return err
		}
	}
	temporary, err := t.writeTemporary(content)
	if temporary != "" {
		defer func() {
			if err != nil {
				_ = os.Remove(temporary) // err is the more useful error
			}
		}()
	}
	if err != nil {
		return t.writeError(err)
	}
	if err := os.Rename(temporary, t.path); err != nil {
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("%s is a mount of its own and cannot be replaced; write it with cat > FILE", quoted(t.name))
		}
		return t.writeError(err)
	}
	return nil
}

// checkWritable returns an error if an existing file is not writable. Without this
// check, the rename would replace a read-only file.
func (t target) checkWritable() error {
	f, err := os.OpenFile(t.path, os.O_WRONLY, 0)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, syscall.ETXTBSY):
		return nil // the file is being executed; running processes keep the old one
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is not to be written (mode %v): %w", quoted(t.name), t.info.Mode().Perm(), rootCause(err))
	}
	return fileError(t.name, err)
}

// writeTemporary writes a temporary file in the same directory. It returns the name as
// soon as the file exists, even with an error.
func (t target) writeTemporary(content []byte) (name string, err error) {
	mode := fs.FileMode(0o666)
	if t.exists() {
		mode = 0o600 // until the file has the right owner
	}
	path := dirOf(t.path) + "/.mini-tool-" + strings.ToLower(rand.Text())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // the folder is the caller's choice
	if err != nil {
		return "", err
	}
	if t.exists() {
		if err = copyOwner(f, t.info); err == nil {
			err = f.Chmod(t.info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky))
		}
	}
	if err == nil {
		_, err = f.Write(content)
	}
	return path, errors.Join(err, f.Close())
}

// writeError returns an error that says why the file could not be written.
func (t target) writeError(err error) error {
	dir := quoted(dirOf(t.path))
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: nothing can be written into the folder %s: %w", quoted(t.name), dir, rootCause(err))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s is as it was: %w", quoted(t.name), rootCause(err))
	}
	return fmt.Errorf("%s: %w", quoted(t.name), rootCause(err))
}

// note returns a note for the output if the replaced file had other hard links.
func (t target) note() string {
	if n := links(t.info); n > 1 {
		return fmt.Sprintf(" (it had %s; they keep what was in it)", counted(n-1, "other name"))
	}
	return ""
}
