package shell

import (
	"path"
	"slices"
	"strings"
)

// normalized returns w with Dir and ExtraDirs clean, and "~" expanded in
// ExtraDirs. It removes directories that are not absolute.
func (w Workspace) normalized() Workspace {
	dirs := make([]string, 0, len(w.ExtraDirs))
	for _, dir := range w.ExtraDirs {
		if strings.HasPrefix(dir, "~") && w.Home != "" && (dir == "~" || dir[1] == '/') {
			dir = w.Home + dir[1:]
		}
		if path.IsAbs(dir) {
			dirs = append(dirs, path.Clean(dir))
		}
	}
	w.ExtraDirs = dirs
	if !path.IsAbs(w.Dir) {
		w.Dir = ""
	} else {
		w.Dir = path.Clean(w.Dir)
	}
	if !path.IsAbs(w.Home) {
		w.Home = ""
	}
	if resolve, n := w.Resolve, 0; resolve != nil {
		w.Resolve = func(path string) (string, bool) {
			if n++; n > maxResolved {
				return "", false
			}
			return resolve(path)
		}
	}
	return w
}

// harmlessDevices are device files that any command may use.
var harmlessDevices = []string{
	"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/urandom", "/dev/random", "/dev/full",
}

// resolveDotDot returns an absolute path without "..". As in the kernel, ".."
// after a symbolic link is the parent of the link's target. linked reports
// whether there was such a link. ok is false if the result is unknown, for
// example because a glob pattern may match a link. Without Resolve, the path is
// cleaned as text.
func (w Workspace) resolveDotDot(abs string) (resolved string, linked, ok bool) {
	if w.Resolve == nil || !slices.Contains(strings.Split(abs, "/"), "..") {
		return path.Clean(abs), false, true
	}
	if strings.Count(abs, "/") > maxPathElements {
		return path.Clean(abs), false, false
	}
	resolved = "/"
	for name := range strings.SplitSeq(abs, "/") {
		if name != ".." {
			resolved = path.Join(resolved, name)
			continue
		}
		parent := path.Dir(resolved)
		target, ok := w.Resolve(resolved)
		parentTarget, parentOK := w.Resolve(parent)
		if !ok || !parentOK || strings.ContainsAny(path.Base(resolved), "*?["+placeholder) {
			return path.Clean(abs), false, false
		}
		if target != path.Join(parentTarget, path.Base(resolved)) {
			parent, linked = path.Dir(target), true
		}
		resolved = parent
	}
	return resolved, linked, true
}

// locate returns the location of a clean absolute path. linked says that the
// path was resolved through a link, so its text does not show whether it is
// outside.
func (w Workspace) locate(abs string, linked bool) Location {
	if slices.Contains(harmlessDevices, abs) || strings.HasPrefix(abs, "/dev/fd/") {
		return Inside
	}
	if w.Dir == "" {
		return Unknown
	}
	if !linked && !w.contains(abs) {
		return Outside
	}
	if w.Resolve == nil || strings.ContainsAny(abs, "*?[") && w.locateGlob(abs) == Inside {
		return Inside
	}
	return w.locateResolved(abs)
}

// locateGlob locates the directory before the first wildcard of a path.
func (w Workspace) locateGlob(abs string) Location {
	dir := abs[:strings.LastIndexByte(abs[:strings.IndexAny(abs, "*?[")], '/')+1]
	return w.locateResolved(dir)
}

// locateResolved locates a path after following symbolic links.
func (w Workspace) locateResolved(abs string) Location {
	target, ok := w.Resolve(abs)
	if !ok {
		return Unknown
	}
	for _, dir := range append([]string{w.Dir}, w.ExtraDirs...) {
		if root, ok := w.Resolve(dir); ok && isBelow(target, root) {
			return Inside
		}
	}
	return Outside
}

// contains reports whether a path is in the workspace, compared as text.
func (w Workspace) contains(abs string) bool {
	return isBelow(abs, w.Dir) || slices.ContainsFunc(w.ExtraDirs, func(dir string) bool { return isBelow(abs, dir) })
}

func isBelow(abs, dir string) bool {
	return abs == dir || dir == "/" || strings.HasPrefix(abs, dir+"/")
}
