// Package userfiles edits the user's files config.yaml and .env in mini's configuration folder.
//
// A change is atomic, and only the user can read the files. A lock serializes the changes of
// several processes. Update follows symbolic links, which stay links.
//
//	err := userfiles.Update(ctx, path, func(old []byte) ([]byte, error) {
//		return append(old, line...), nil
//	})
package userfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/internal/atomicfile"
)

const (
	folderMode = 0o700
	fileMode   = 0o600
	// lockTimeout is how long to wait for another process to release the lock; lockPoll is
	// the polling interval.
	lockTimeout = 10 * time.Second
	lockPoll    = 20 * time.Millisecond
)

// UserError is a problem with the user's files that the user has to fix.
type UserError struct{ text string }

func (e *UserError) Error() string { return e.text }

func errorf(format string, args ...any) error { return &UserError{fmt.Sprintf(format, args...)} }

// Read returns the content of a file, or nil if the file does not exist. A link without a
// target is an error.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, errorf("%s is a broken link; create its target, or remove the link", path)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, errorf("%s is not a regular file; move it away", path)
	}
	data, err := os.ReadFile(path) //nolint:gosec // G304: the user's own file
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// Update replaces the content of a file by the result of change, under a lock. It does not
// write the file if change fails or returns the same content.
func Update(ctx context.Context, path string, change func(old []byte) ([]byte, error)) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return fmt.Errorf("create folder for %s: %w", filepath.Base(path), err)
	}
	lock := flock.New(filepath.Join(dir, ".lock"), flock.SetPermissions(fileMode))
	lockCtx, stop := context.WithTimeout(ctx, lockTimeout)
	defer stop()
	if _, err := lock.TryLockContext(lockCtx, lockPoll); err != nil {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case lockCtx.Err() != nil:
			return errorf("%s: locked by another mini for %v; end that process first", path, lockTimeout)
		}
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	old, err := Read(path)
	if err != nil {
		return err
	}
	data, err := change(bytes.Clone(old))
	if err != nil || bytes.Equal(data, old) {
		return err
	}
	return write(path, data)
}

// write replaces a file, or the target of a symbolic link.
func write(path string, data []byte) error {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = path, nil
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := atomicfile.Write(target, data, fileMode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
