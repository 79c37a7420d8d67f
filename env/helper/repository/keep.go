package repository

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The helper keeps open files for the program, from its start until the sandbox ends:
// those with the objects that the work begins with. So a diff does not need the agent's
// .git, which may be gone. The open files cost no space, and no process of the sandbox
// can remove them.
const (
	// KeepFD is the socket that passes files to the helper. The files that the helper
	// kept before follow it; the program's first argument is their number.
	KeepFD = 3
	// maxKept bounds the number of files, maxLoose the size of loose objects, in bytes. If
	// there is more, no files are kept.
	maxKept  = 200
	maxLoose = 32 << 20
	// keptPrefix is the length of the number before the description of the kept files.
	keptPrefix = 20
)

// kept describes the kept files. It is stored in the first of them, followed by the
// loose objects; the others are packs and their indexes.
type kept struct {
	Packs      []keptFile `json:"packs"`
	Loose      []keptFile `json:"loose"`
	Alternates []string   `json:"alternates"` // as in info/alternates, of all stores
}

type keptFile struct {
	Store string `json:"store"` // folder of objects
	Name  string `json:"name"`  // in the store
	Size  int64  `json:"size,omitempty"`
}

// keep passes the files with the objects of the repository to the helper. It does nothing
// if there are too many of them.
func (s *shadow) keep() error {
	var k kept
	var open []*os.File
	defer func() {
		for _, f := range open {
			f.Close() //nolint:errcheck // nothing was written, or the error was returned
		}
	}()
	header, err := os.CreateTemp(s.tmp, "kept")
	if err != nil {
		return err
	}
	open = append(open, header)
	content, err := os.CreateTemp(s.tmp, "kept")
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // it is copied
	stores := []string{filepath.Join(s.common, "objects")}
	for _, dir := range s.req.Repository.Submodules {
		stores = append(stores, filepath.Join(string(dir), "objects"))
	}
	var size int64
	for _, store := range stores {
		err := filepath.WalkDir(store, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil //nolint:nilerr // git cannot read it either
			}
			name := strings.TrimPrefix(path, store+"/")
			switch {
			case name == "info/alternates":
				if text, ok := readSmall(path, 1<<20); ok {
					k.Alternates = append(k.Alternates, absoluteStores(store, string(text))...)
				}
			case strings.HasPrefix(name, "pack/") && (strings.HasSuffix(name, ".pack") || strings.HasSuffix(name, ".idx")):
				if len(open) >= maxKept {
					return errTooMany
				}
				f, err := os.Open(path) //nolint:gosec // in the git directory
				if err != nil {
					return nil //nolint:nilerr // as above
				}
				open = append(open, f)
				k.Packs = append(k.Packs, keptFile{Store: store, Name: name})
			case len(name) > 3 && name[2] == '/':
				text, ok := readSmall(path, maxLoose-size)
				if !ok {
					return errTooMany
				}
				size += int64(len(text))
				k.Loose = append(k.Loose, keptFile{store, name, int64(len(text))})
				_, err := content.Write(text)
				return err
			}
			return nil
		})
		if errors.Is(err, errTooMany) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(header, "%0*d%s", keptPrefix, len(text), text); err != nil {
		return err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(header, content); err != nil {
		return err
	}
	var fds []int
	for _, f := range open {
		fds = append(fds, int(f.Fd()))
	}
	err = syscall.Sendmsg(KeepFD, []byte{1}, syscall.UnixRights(fds...), nil, 0)
	if errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.ENOTSOCK) {
		return nil // no helper started the program
	}
	return err
}

var errTooMany = errors.New("too many objects to keep")

// absoluteStores returns the object stores that a list of alternates names.
func absoluteStores(store, list string) (stores []string) {
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case filepath.IsAbs(line) || line[0] == '"':
			stores = append(stores, line)
		default:
			stores = append(stores, filepath.Join(store, line))
		}
	}
	return stores
}

// keptFiles is the number of files that the helper kept; 0 if no helper started the program.
func keptFiles() int {
	if len(os.Args) < 2 {
		return 0
	}
	n, err := strconv.Atoi(os.Args[1])
	if err != nil || n < 0 || n > maxKept {
		return 0
	}
	return n
}

// readKept reads a part of the first kept file. That stays open, unlike an os.File.
func readKept(p []byte, at int64) error {
	n, err := syscall.Pread(KeepFD+1, p, at)
	if err == nil && n < len(p) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("read kept objects: %w", err)
	}
	return nil
}

// restoreKept puts the kept files that are no longer in their place into the shadow, and
// returns the object stores that they depend on.
func (s *shadow) restoreKept() (stores [][]byte, err error) {
	n := keptFiles()
	if n == 0 || s.start.Tree == "" {
		return nil, nil
	}
	prefix := make([]byte, keptPrefix)
	if err := readKept(prefix, 0); err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(string(prefix))
	if err != nil || size > maxOutput {
		return nil, fmt.Errorf("read kept objects: %d bytes, %w", size, err)
	}
	text := make([]byte, size)
	var k kept
	if err := readKept(text, keptPrefix); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("read kept objects: %w", err)
	}
	objects := filepath.Join(s.path, "objects")
	for i, p := range k.Packs[:min(len(k.Packs), n-1)] {
		fd := KeepFD + 2 + i
		var now, then syscall.Stat_t
		if syscall.Fstat(fd, &then) != nil || syscall.Stat(filepath.Join(p.Store, p.Name), &now) == nil && now.Ino == then.Ino && now.Dev == then.Dev {
			continue
		}
		err := os.Symlink(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), filepath.Join(objects, p.Name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	at := keptPrefix + int64(size)
	for _, l := range k.Loose {
		if _, err := os.Lstat(filepath.Join(l.Store, l.Name)); err != nil {
			text := make([]byte, l.Size)
			if err := readKept(text, at); err != nil {
				return nil, err
			}
			to := filepath.Join(objects, l.Name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600)); err != nil {
				return nil, err
			}
		}
		at += l.Size
	}
	for _, store := range k.Alternates {
		stores = append(stores, []byte(store))
	}
	return stores, nil
}
