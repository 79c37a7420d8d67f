package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// folder is an open directory: names are looked up in it and nowhere else.
type folder struct {
	name string // within the one above
	*os.Root
}

// into opens a directory of f. A link to one is refused, also one that takes the
// directory's place at this moment.
func (f folder) into(name string) (folder, error) {
	seen, err := f.Lstat(name)
	if err != nil {
		return folder{}, err
	}
	if !seen.IsDir() {
		return folder{}, fmt.Errorf("%w: %q is %s, not a directory", ErrRefused, name, kind(seen.Mode()))
	}
	root, err := f.OpenRoot(name)
	if err != nil {
		return folder{}, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = fmt.Errorf("%w: %q was replaced while it was opened", ErrRefused, name)
	}
	if err != nil {
		return folder{}, errors.Join(err, root.Close())
	}
	return folder{name, root}, nil
}

// trail is the way from the top to the folder worked in. Entries of a stream
// come in the order of their folders, so the next one is rarely far away.
type trail []folder

// to walks to the directory at path (its parts, below the top), making what is
// missing when asked to, and returns it.
func (t *trail) to(path []string, missing func(in folder, name string) error) (folder, error) {
	if len(path) > MaxDepth {
		return folder{}, fmt.Errorf("%w: more than %d folders inside each other", ErrRefused, MaxDepth)
	}
	shared := 0
	for shared < len(path) && shared+1 < len(*t) && (*t)[shared+1].name == path[shared] {
		shared++
	}
	if err := t.cut(shared + 1); err != nil {
		return folder{}, err
	}
	for _, name := range path[shared:] {
		above := (*t)[len(*t)-1]
		next, err := above.into(name)
		if errors.Is(err, fs.ErrNotExist) && missing != nil {
			if err = missing(above, name); err == nil {
				next, err = above.into(name)
			}
		}
		if err != nil {
			return folder{}, err
		}
		*t = append(*t, next)
	}
	return (*t)[len(*t)-1], nil
}

// cut closes all but the first n folders.
func (t *trail) cut(n int) error {
	var errs []error
	for i := len(*t) - 1; i >= n; i-- {
		errs = append(errs, (*t)[i].Close())
		*t = (*t)[:i]
	}
	return errors.Join(errs...)
}

// split takes a name of a stream apart. It is relative, whatever way it is
// written, or refused; "." has no parts.
func split(name string) ([]string, error) {
	if strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("%w: absolute name", ErrRefused)
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return nil, fmt.Errorf("%w: a name that leads upwards", ErrRefused)
		case !isLocal(part):
			return nil, fmt.Errorf("%w: a name that is none here", ErrRefused)
		default:
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// kind names a type of file in words.
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
