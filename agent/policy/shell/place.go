package shell

import (
	"path"
	"slices"
	"strings"
)

// clean makes the folders comparable.
func (p Place) clean() Place {
	folders := make([]string, 0, len(p.Inside))
	for _, dir := range p.Inside {
		if strings.HasPrefix(dir, "~") && p.Home != "" && (dir == "~" || dir[1] == '/') {
			dir = p.Home + dir[1:]
		}
		if path.IsAbs(dir) {
			folders = append(folders, path.Clean(dir))
		}
	}
	p.Inside = folders
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

// devices are files that lead nowhere.
var devices = []string{
	"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/urandom", "/dev/random", "/dev/full",
}

// walk is an absolute path without "..": behind a link that leads to the parent
// of what the link names, as the kernel has it. linked says that there was such
// a link, and ok that all can be told; patterns may match links. Without Resolve
// the path goes by its text.
func (p Place) walk(abs string, pattern bool) (walked string, linked, ok bool) {
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
		real, told := p.Resolve(walked)
		above, also := p.Resolve(parent)
		if !told || !also || pattern && strings.ContainsAny(path.Base(walked), "*?["+placeholder) {
			return path.Clean(abs), false, false
		}
		if real != path.Join(above, path.Base(walked)) {
			parent, linked = path.Dir(real), true
		}
		walked = parent
	}
	return walked, linked, true
}

// where is the side that a clean absolute path is on; of a linked one the text
// does not say that it is outside.
func (p Place) where(abs string, linked bool) Where {
	if slices.Contains(devices, abs) || strings.HasPrefix(abs, "/dev/fd/") {
		return Inside
	}
	if p.Dir == "" {
		return Unknown
	}
	if !linked && !p.within(abs) {
		return Outside
	}
	if p.Resolve == nil || strings.ContainsAny(abs, "*?[") && p.globbed(abs) == Inside {
		return Inside
	}
	return p.resolved(abs)
}

// globbed is about the part of a path that has no pattern.
func (p Place) globbed(abs string) Where {
	dir := abs[:strings.LastIndexByte(abs[:strings.IndexAny(abs, "*?[")], '/')+1]
	return p.resolved(dir)
}

// resolved follows links.
func (p Place) resolved(abs string) Where {
	real, ok := p.Resolve(abs)
	if !ok {
		return Unknown
	}
	for _, dir := range append([]string{p.Dir}, p.Inside...) {
		if root, ok := p.Resolve(dir); ok && below(real, root) {
			return Inside
		}
	}
	return Outside
}

// within goes by the text.
func (p Place) within(abs string) bool {
	return below(abs, p.Dir) || slices.ContainsFunc(p.Inside, func(dir string) bool { return below(abs, dir) })
}

func below(abs, dir string) bool {
	return abs == dir || dir == "/" || strings.HasPrefix(abs, dir+"/")
}

// remembered asks about each path once, and about so many only.
func remembered(resolve func(string) (string, bool)) func(string) (string, bool) {
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
