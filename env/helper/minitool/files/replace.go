package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// target is a file that is to be replaced, or made.
type target struct {
	name string      // as it was given
	path string      // where symbolic links lead from there
	was  fs.FileInfo // nil where there is none
}

func (t target) exists() bool { return t.was != nil }

// maxLinks is how many symbolic links are followed, as the kernel does.
const maxLinks = 40

// aim finds what a name stands for. Links are followed, also one that leads
// to nothing yet: what it points to is made, and the link stays.
func aim(name string) (target, error) {
	t := target{name: name, path: name}
	for range maxLinks {
		info, err := os.Lstat(t.path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(t.path, "/"):
			return t, nil
		case errors.Is(err, fs.ErrNotExist):
			return t, fmt.Errorf("%s: a name that ends in / is a folder's", quoted(name))
		case err != nil:
			return t, inTheWay(name, err)
		case info.Mode()&fs.ModeSymlink == 0:
			t.was = info
			return t, special(name, info)
		}
		to, err := os.Readlink(t.path)
		if err != nil {
			return t, inTheWay(name, err)
		}
		if !filepath.IsAbs(to) {
			// Not cleaned: what .. means is up to the links on the way.
			to = dirOf(t.path) + "/" + to
		}
		t.path = to
	}
	return t, fmt.Errorf("%s: too many symbolic links", quoted(name))
}

// dirOf is the folder part of a path as it stands.
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

// replace puts content in the place of the file, at once. The mode stays, and
// the owner where that is allowed; a new file has those of any.
func (t target) replace(content []byte) (err error) {
	if t.exists() {
		if err := t.writable(); err != nil {
			return err
		}
	}
	hold := holdSignals()
	defer func() { hold.release() }() // when the temporary file is gone
	temporary, err := t.beside(content)
	if temporary != "" {
		defer func() {
			if err != nil {
				_ = os.Remove(temporary) // the error tells more
			}
		}()
	}
	if err != nil {
		return t.unwritten(err)
	}
	if err := os.Rename(temporary, t.path); err != nil {
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("%s is a mount of its own and cannot be replaced; write it with cat > FILE", quoted(t.name))
		}
		return t.unwritten(err)
	}
	return nil
}

// writable says why a file that is there must not be written: replacing it would
// get round its mode.
func (t target) writable() error {
	f, err := os.OpenFile(t.path, os.O_WRONLY, 0) //nolint:gosec // nothing is written
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, syscall.ETXTBSY):
		return nil // it runs, and goes on with what it was
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is not to be written (mode %v): %w", quoted(t.name), t.was.Mode().Perm(), reason(err))
	}
	return inTheWay(t.name, err)
}

// beside writes a temporary file into the same folder. Its name is given as soon
// as there is one.
func (t target) beside(content []byte) (name string, err error) {
	mode := fs.FileMode(0o666)
	if t.exists() {
		mode = 0o600 // until it is known to have the right owner
	}
	path := dirOf(t.path) + "/.mini-tool-" + strings.ToLower(rand.Text())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // the folder is the caller's choice
	if err != nil {
		return "", err
	}
	if t.exists() {
		if err = keepOwner(f, t.was); err == nil {
			err = f.Chmod(t.was.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky))
		}
	}
	if err == nil {
		_, err = f.Write(content)
	}
	return path, errors.Join(err, f.Close())
}

// unwritten says why a file could not be written, where its folder is in the
// way.
func (t target) unwritten(err error) error {
	dir := quoted(dirOf(t.path))
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: nothing can be written into the folder %s: %w", quoted(t.name), dir, reason(err))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s is as it was: %w", quoted(t.name), reason(err))
	}
	return fmt.Errorf("%s: %w", quoted(t.name), reason(err))
}

// note is what else there is to know of a file that was replaced.
func (t target) note() string {
	if n := links(t.was); n > 1 {
		return fmt.Sprintf(" (it had %s; they keep what was in it)", counted(n-1, "other name"))
	}
	return ""
}

// held are the signals that would end this program in the middle.
type held chan os.Signal

func holdSignals() held {
	h := make(held, 1)
	signal.Notify(h, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return h
}

// release lets them end it now.
func (h held) release() {
	signal.Stop(h)
	select {
	case s := <-h:
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Signal(s) // it comes to this very process
		}
	default:
	}
}
