// Package home changes the files that are the user's own: config.yaml and .env,
// in the folder that mini has below the user's configuration.
//
// A change is whole or not at all, and nobody else can read what was written.
// Two minis that change a file at the same time wait for each other. A file that
// is a link is changed where it really is, and stays a link.
//
//	err := home.Change(ctx, path, func(old []byte) ([]byte, error) { return append(old, line...), nil })
package home

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
	// patience is how long another mini may have the files, and poll how often
	// one looks.
	patience = 10 * time.Second
	poll     = 20 * time.Millisecond
)

// Error is something about the user's files that the user has to mend.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Read is what a file has; nothing where there is none yet.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, errorf("%s is a link to what is not there; make that, or remove the link", path)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, errorf("%s is no file; move it out of the way", path)
	}
	data, err := os.ReadFile(path) //nolint:gosec // G304: it is the user's own
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// Change writes what change makes of a file, while nobody else changes it. With
// an error of change's, and where it changes nothing, the file is not touched.
func Change(ctx context.Context, path string, change func(old []byte) ([]byte, error)) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return fmt.Errorf("make folder for %s: %w", filepath.Base(path), err)
	}
	lock := flock.New(filepath.Join(dir, ".lock"), flock.SetPermissions(fileMode))
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if _, err := lock.TryLockContext(waiting, poll); err != nil {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case waiting.Err() != nil:
			return errorf("%s: another mini has been changing it for %v; end that one first", path, patience)
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

// write replaces a file, or what a link of that name leads to.
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
