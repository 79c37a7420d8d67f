package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FindShell returns the command line that runs scripts: shell (bash -c if empty) with
// the name of the program replaced by the program's path. It searches the PATH of
// environ, then the usual directories. If bash is missing it uses sh, and if sh is
// missing, bash. The second result is false if no program is found.
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
		if path, ok := findProgram(name, environ); ok {
			return append([]string{path}, shell[1:]...), true
		}
	}
	return nil, false
}

func findProgram(name string, environ []string) (string, bool) {
	if strings.ContainsRune(name, filepath.Separator) {
		return name, isExecutable(name)
	}
	var dirs []string
	for _, kv := range environ {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs = filepath.SplitList(path)
		}
	}
	for _, dir := range append(dirs, "/bin", "/usr/bin", "/usr/local/bin") {
		// Relative entries would depend on the command's directory.
		if path := filepath.Join(dir, name); filepath.IsAbs(path) && isExecutable(path) {
			return path, true
		}
	}
	return "", false
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// isShell reports whether an interpreter is a shell, which can source a file.
func isShell(path string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "ash", "ksh", "zsh", "rbash"}, filepath.Base(path))
}
