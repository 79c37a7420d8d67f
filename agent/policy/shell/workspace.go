package shell

import (
	"path"
	"slices"
	"strings"
)

// normalized returns p with clean, absolute paths.
func (p Workspace) normalized() Workspace {
	folders := make([]string, 0, len(p.ExtraDirs))
	for _, dir := range p.ExtraDirs {
		if strings.HasPrefix(dir, "~") && p.Home != "" && (dir == "~" || dir[1] == '/') {
			dir = p.Home + dir[1:]
		}
		if path.IsAbs(dir) {
			folders = append(folders, path.Clean(dir))
		}
	}
	p.ExtraDirs = folders
	if !path.IsAbs(p.Dir) {
		p.Dir = ""
	} else {
		p.Dir = path.Clean(p.Dir)
	}
	if !path.IsAbs(p.Home) {
		p.Home = ""
	}
	return p
}

// harmlessDevices are device files that any command may use.
var harmlessDevices = []string{
	"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/urandom", "/dev/random", "/dev/full",
}

// resolveDotDot returns an absolute path without "..". As in the kernel, ".."
// after a symbolic link is the parent of the link's target. linked reports
// whether there was such a link. ok is false if the result is unknown, for
// example because a pattern may match a link. Without Resolve, the path is
// cleaned as text.
func (p Workspace) resolveDotDot(abs string, pattern bool) (walked string, linked, ok bool) {
	if p.Resolve == nil || !slices.Contains(strings.Split(abs, "/"), "..") {
		return path.Clean(abs), false, true
	}
	if strings.Count(abs, "/") > maxNames {
		return path.Clean(abs), false, false
	}
	walked = "/"
	for name := range strings.SplitSeq(abs, "/") {
		if name != ".." {
			walked = path.Join(walked, name)
			continue
		}
		parent := path.Dir(walked)
		real, ok := p.Resolve(walked)
		above, parentOK := p.Resolve(parent)
		if !ok || !parentOK || pattern && strings.ContainsAny(path.Base(walked), "*?["+placeholder) {
			return path.Clean(abs), false, false
		}
		if real != path.Join(above, path.Base(walked)) {
			parent, linked = path.Dir(real), true
		}
		walked = parent
	}
	return walked, linked, true
}

// locate returns the location of a clean absolute path. If linked, the text of
// the path does not tell whether it is outside.
func (p Workspace) locate(abs string, linked bool) Location {
	if slices.Contains(harmlessDevices, abs) || strings.HasPrefix(abs, "/dev/fd/") {
		return Inside
	}
	if p.Dir == "" {
		return Unknown
	}
	if !linked && !p.contains(abs) {
		return Outside
	}
	if p.Resolve == nil || strings.ContainsAny(abs, "*?[") && p.locateGlob(abs) == Inside {
		return Inside
	}
	return p.locateResolved(abs)
}

// locateGlob locates the directory before the first wildcard of a path.
func (p Workspace) locateGlob(abs string) Location {
	dir := abs[:strings.LastIndexByte(abs[:strings.IndexAny(abs, "*?[")], '/')+1]
	return p.locateResolved(dir)
}

// locateResolved locates a path after following symbolic links.
func (p Workspace) locateResolved(abs string) Location {
	real, ok := p.Resolve(abs)
	if !ok {
		return Unknown
	}
	for _, dir := range append([]string{p.Dir}, p.ExtraDirs...) {
		if root, ok := p.Resolve(dir); ok && isBelow(real, root) {
			return Inside
		}
	}
	return Outside
}

// contains reports whether a path is in the workspace, compared as text.
func (p Workspace) contains(abs string) bool {
	return isBelow(abs, p.Dir) || slices.ContainsFunc(p.ExtraDirs, func(dir string) bool { return isBelow(abs, dir) })
}

func isBelow(abs, dir string) bool {
	return abs == dir || dir == "/" || strings.HasPrefix(abs, dir+"/")
}

// memoize caches the results of resolve and calls it for at most maxResolved
// paths.
func memoize(resolve func(string) (string, bool)) func(string) (string, bool) {
	if resolve == nil {
		return nil
	}
	type answer struct {
		path string
		ok   bool
	}
	known := map[string]answer{}
	return func(path string) (string, bool) {
		a, ok := known[path]
		if !ok && len(known) < maxResolved {
			a.path, a.ok = resolve(path)
			known[path] = a
		}
		return a.path, a.ok
	}
}
