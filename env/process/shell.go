package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FindShell returns the command line that runs scripts: shell (bash -c when
// empty) with its program replaced by the path found for it. It looks in the
// PATH of environ, then in the usual places; where there is no bash it takes
// sh, and where there is no sh, bash, which can do what sh can. The second value
// is false when the place has no such program at all.
func FindShell(shell, environ []string) ([]string, bool) {
	if len(shell) == 0 {
		shell = []string{"bash", "-c"}
	}
	names := []string{shell[0]}
	switch filepath.Base(shell[0]) {
	case "bash":
		names = append(names, "sh")
	case "sh":
		names = append(names, "bash")
	}
	for _, name := range names {
		if path, ok := find(name, environ); ok {
			return append([]string{path}, shell[1:]...), true
		}
	}
	return nil, false
}

func find(name string, environ []string) (string, bool) {
	if strings.ContainsRune(name, filepath.Separator) {
		return name, executable(name)
	}
	var dirs []string
	for _, kv := range environ {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs = filepath.SplitList(path)
		}
	}
	for _, dir := range append(dirs, "/bin", "/usr/bin", "/usr/local/bin") {
		// A relative entry would depend on the command's directory.
		if path := filepath.Join(dir, name); filepath.IsAbs(path) && executable(path) {
			return path, true
		}
	}
	return "", false
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// readsScripts tells shells, which can source a file, from other interpreters.
func readsScripts(path string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "ash", "ksh", "zsh", "rbash"}, filepath.Base(path))
}
