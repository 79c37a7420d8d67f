package compare

import (
	"path/filepath"
	"slices"
	"strings"
)

// Names returns short names of run folders: their paths without the folder that
// contains all of them.
func Names(dirs []string) []string {
	names := make([]string, len(dirs))
	for i, dir := range dirs {
		names[i] = filepath.ToSlash(filepath.Clean(dir))
	}
	if len(names) < 2 {
		return names
	}
	for {
		first, _, ok := strings.Cut(names[0], "/")
		if !ok || slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, first+"/") }) {
			return names
		}
		for i := range names {
			names[i] = strings.TrimPrefix(names[i], first+"/")
		}
	}
}
