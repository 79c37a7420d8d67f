package repository

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inventory returns a hash of everything in which git could find history: the files of
// the git directory, the staged files and the remotes. Of a pack it hashes the size, the
// start and the end; the pack's index, which is hashed in full, has the checksums of all
// objects. Of the index of staged files it hashes the listing, because git updates the
// times in it. A git directory with links has no inventory, because links lead to files
// that are not listed.
func (f *found) inventory(ctx context.Context) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q\n", f.top, f.gitDir, f.commonDir) //nolint:errcheck // a hash takes all
	dirs := []string{f.commonDir}
	if !isBelow(f.commonDir, f.gitDir) {
		dirs = append(dirs, f.gitDir)
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir():
				_, err = fmt.Fprintf(sum, "folder %q\n", path)
			case !entry.Type().IsRegular():
				return fmt.Errorf("the git directory has links: %s", path)
			case path == filepath.Join(f.gitDir, "index"):
			default:
				err = addFile(sum, path)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	if _, err := f.run(ctx, nil, sum, "ls-files", "-s"); err != nil {
		return "", err
	}
	if _, err := f.run(ctx, nil, sum, "remote"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// addFile adds the name and the content of a file to a hash.
func addFile(sum io.Writer, path string) (err error) {
	file, err := os.Open(path) //nolint:gosec // in the git directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(sum, "file %q %d\n", path, info.Size()); err != nil {
		return err
	}
	if !strings.HasSuffix(path, ".pack") {
		_, err = io.Copy(sum, file)
		return err
	}
	const start, end = 12, 32
	_, err = io.Copy(sum, io.NewSectionReader(file, 0, start))
	if err == nil {
		_, err = io.Copy(sum, io.NewSectionReader(file, max(0, info.Size()-end), end))
	}
	return err
}

// findLink returns the first link in a git directory, without those in its submodules and
// hooks.
func findLink(dir string) (string, error) {
	var link string
	skipped := []string{filepath.Join(dir, "modules"), filepath.Join(dir, "hooks")}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(skipped, path) && entry.IsDir():
			return fs.SkipDir
		case entry.Type()&fs.ModeSymlink != 0:
			link = path
			return fs.SkipAll
		}
		return nil
	})
	return link, err
}
