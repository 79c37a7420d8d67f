package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// folder is an open directory. Names are resolved inside it only.
type folder struct {
	name string // in the parent directory
	*os.Root
}

// openDir opens a subdirectory. It refuses symbolic links, even if one replaces the
// directory while it is opened.
func (f folder) openDir(name string) (folder, error) {
	info, err := f.Lstat(name)
	if err != nil {
		return folder{}, err
	}
	if !info.IsDir() {
		return folder{}, fmt.Errorf("%w: %q is %s, not a directory", ErrRefused, name, kind(info.Mode()))
	}
	root, err := f.OpenRoot(name)
	if err != nil {
		return folder{}, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%w: %q was replaced while it was opened", ErrRefused, name)
	}
	if err != nil {
		return folder{}, errors.Join(err, root.Close())
	}
	return folder{name, root}, nil
}

// openPath holds the open directories from the top to the current one. Successive
// entries of a stream are usually in nearby directories, so most open directories can
// be reused.
type openPath []folder

// open opens the directory at path, given as names below the top. If create is not
// nil, it is called for missing directories.
func (p *openPath) open(path []string, create func(parent folder, name string) error) (folder, error) {
	if len(path) > MaxDepth {
		return folder{}, fmt.Errorf("%w: directories nested deeper than %d", ErrRefused, MaxDepth)
	}
	shared := 0
	for shared < len(path) && shared+1 < len(*p) && (*p)[shared+1].name == path[shared] {
		shared++
	}
	if err := p.truncate(shared + 1); err != nil {
		return folder{}, err
	}
	for _, name := range path[shared:] {
		parent := (*p)[len(*p)-1]
		next, err := parent.openDir(name)
		if errors.Is(err, fs.ErrNotExist) && create != nil {
			if err = create(parent, name); err == nil {
				next, err = parent.openDir(name)
			}
		}
		if err != nil {
			return folder{}, err
		}
		*p = append(*p, next)
	}
	return (*p)[len(*p)-1], nil
}

// truncate closes all but the first n directories.
func (p *openPath) truncate(n int) error {
	var errs []error
	for i := len(*p) - 1; i >= n; i-- {
		errs = append(errs, (*p)[i].Close())
		*p = (*p)[:i]
	}
	return errors.Join(errs...)
}

// splitName splits a name in a stream into its parts. It refuses names that are not
// relative, have a part "..", or are invalid on this system. The name "." has no parts.
func splitName(name string) ([]string, error) {
	if strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("%w: absolute name", ErrRefused)
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return nil, fmt.Errorf("%w: .. in its name", ErrRefused)
		case !isLocal(part):
			return nil, fmt.Errorf("%w: name is invalid on this system", ErrRefused)
		default:
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// kind returns a description of a file type.
func kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "a device"
	}
}
