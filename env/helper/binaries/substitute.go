package binaries

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/minibench/mini/env/helper/program"
	"github.com/minibench/mini/internal/version"
)

// messages is the writer of Init; nil before Init.
var messages io.Writer

// Init makes sandboxes work in a program that embeds mini, and in a mini that go install
// built: no helper is embedded there. Call it first in main, before flags are parsed:
//
//	func main() {
//		binaries.Init(os.Stderr)
//
// A statically linked program (CGO_ENABLED=0) is its own helper: its executable is copied
// into sandboxes, and if Init finds that it was started there, it does the helper's work and
// does not return. For other programs, and other architectures, Load builds the helper once
// with Go's toolchain, and writes a line about that to w.
func Init(w io.Writer) {
	if program.IsStarted() {
		program.Main()
	}
	messages = w
}

// openSubstitute opens a helper for a program without an embedded one.
func openSubstitute(arch string) (io.ReadCloser, error) {
	switch {
	case messages == nil:
		return nil, ErrNotBuilt
	case arch == runtime.GOARCH && isStatic():
		return os.Open("/proc/self/exe") // the file at the path may have been replaced since the start
	}
	path, err := build(arch)
	if err != nil {
		return nil, err
	}
	return os.Open(path) //nolint:gosec // G304: in the user's cache
}

// isStatic reports whether this executable runs in any Linux sandbox.
func isStatic() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok || runtime.GOOS != "linux" {
		return false
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings["CGO_ENABLED"] == "0" && settings["-buildmode"] == "exe"
}

// build builds the helper from the source of this mini and returns its path in the user's
// cache. It builds only once for a version, and for a folder of source once after each
// build of this program. Errors wrap ErrNotBuilt.
func build(arch string) (string, error) {
	m := version.Module()
	if m == nil {
		return "", ErrNotBuilt
	}
	name, source := m.Version, ""
	if m.Sum == "" {
		if source = sourceFolder(); source == "" {
			return "", ErrNotBuilt
		}
		name = fmt.Sprintf("%x", sha256.Sum256([]byte(source)))[:16]
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNotBuilt, err)
	}
	path := filepath.Join(cache, "mini", "helper", Name(arch)+"-"+name)
	if built, err := os.Stat(path); err == nil && (source == "" || built.ModTime().After(executableTime())) {
		return path, nil
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", ErrNotBuilt
	}
	_, _ = fmt.Fprintf(messages, "mini: building the sandbox helper with Go's toolchain, once: %s\n", path) // best effort
	err = os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil && source == "" {
		source, err = downloadSource(tool, filepath.Dir(path), m)
	}
	if err == nil {
		temp := fmt.Sprintf("%s.%d", path, os.Getpid())
		_, err = runGo(tool, source, arch, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", temp, "./cmd/mini-helper")
		if err == nil {
			err = os.Rename(temp, path)
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNotBuilt, err)
	}
	return path, nil
}

// executableTime returns when this program's executable was built; zero if that is unknown.
func executableTime() time.Time {
	path, err := os.Executable()
	if err != nil {
		return time.Time{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// sourceFolder returns the folder that this program was built from; "" if that is unknown
// (-trimpath) or somebody else could have changed it.
func sourceFolder() string {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "..", "..")
	info, err := os.Stat(filepath.Join(dir, "cmd", "mini-helper"))
	if err != nil || !filepath.IsAbs(file) || info.Mode()&0o002 != 0 {
		return ""
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return ""
	}
	return dir
}

// downloadSource returns the folder of a module in the cache of modules, where go install
// has put it. dir must not be in another module.
func downloadSource(tool, dir string, m *debug.Module) (string, error) {
	out, err := runGo(tool, dir, runtime.GOARCH, "mod", "download", "-json", m.Path+"@"+m.Version)
	if err != nil {
		return "", err
	}
	var found struct{ Dir string }
	err = json.Unmarshal(out, &found)
	return found.Dir, err
}

// runGo runs a command of Go's toolchain in a folder and returns its output.
func runGo(tool, dir, arch string, args ...string) ([]byte, error) {
	cmd := exec.Command(tool, args...) //nolint:gosec,noctx // the go of PATH; Ctrl-C reaches it, too
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-mod=readonly", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %.300s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
