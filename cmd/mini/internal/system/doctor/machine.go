package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
)

// Free space in bytes below which a check warns: for runs, the dataset cache, and images.
const (
	minFreeForRuns   = 2 << 30
	minFreeForCache  = 1 << 30
	minFreeForImages = 20 << 30
)

// settings reports errors in flags, files and variables.
func (e *checker) settings(context.Context) []Check {
	if e.SettingsError == nil {
		return nil
	}
	return []Check{{"settings", Fail, e.SettingsError.Error(), "fix or remove it; the checks below use the defaults"}}
}

// disks checks the folders that mini writes to.
func (e *checker) disks(context.Context) []Check {
	runs := checkFolder("runs", e.RunDir, minFreeForRuns, "free some space, or choose another folder with -o")
	if e.DirError != nil {
		runs = Check{"runs", Fail, e.DirError.Error(), "choose another folder with -o"}
	}
	return []Check{
		runs,
		checkFolder("cache", e.CacheDir, minFreeForCache, "free some space, or move the cache with XDG_CACHE_HOME"),
	}
}

// checkFolder checks whether a folder is writable and has enough free space.
func checkFolder(name, dir string, minFree uint64, advice string) Check {
	if dir == "" {
		return Check{name, Warn, "no default folder on this system", "set XDG_CACHE_HOME, or HOME"}
	}
	parent := existingParent(dir)
	if err := checkWritable(parent); err != nil {
		_, otherAdvice, _ := strings.Cut(advice, ", or ")
		return Check{name, Warn, fmt.Sprintf("%s is not writable: %v", parent, err), otherAdvice}
	}
	free, err := freeBytes(parent)
	switch {
	case err != nil:
		return Check{name, Warn, fmt.Sprintf("%s: %v", parent, err), advice}
	case free < minFree:
		return Check{name, Warn, fmt.Sprintf("%s free in %s", unit.Size(int64(free)), dir), advice}
	}
	return Check{name, OK, fmt.Sprintf("%s free in %s", unit.Size(int64(free)), dir), ""}
}

// existingParent returns dir if it exists, else its nearest existing parent.
func existingParent(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "."
	}
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// checkWritable creates and removes a file in dir. The permissions of dir do not show a
// read-only mount.
func checkWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".mini-doctor-*")
	if err != nil {
		if p, ok := errors.AsType[*os.PathError](err); ok {
			return p.Err
		}
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// images checks the disk for the images of the engine, if it is on this machine. Its data folder is
// elsewhere if the engine is in a virtual machine, for example.
func (e *checker) images(ctx context.Context) []Check {
	if configs.UsesCluster(e.Environment) {
		return nil
	}
	d, err := e.describe(ctx)
	if info, statErr := os.Stat(d.RootDir); err != nil || !strings.HasPrefix(d.Host, "unix://") || statErr != nil || !info.IsDir() {
		return nil
	}
	free, err := freeBytes(d.RootDir)
	if err != nil {
		return nil
	}
	c := Check{"disk", OK, fmt.Sprintf("%s free in %s, for images", unit.Size(int64(free)), d.RootDir), ""}
	if free < minFreeForImages {
		c.Status, c.Advice = Warn, "free some space: docker system df shows its use, docker image prune removes unused images"
	}
	return []Check{c}
}

// Numbers of open files that mini may need: independently of the workers, and for each worker
// (two connections to the engine, one to the model, the journal, and a reserve).
const (
	baseFiles   = 64
	workerFiles = 12
)

// CheckOpenFiles returns an error if the limit of open files is less than half of the number
// that the workers may need.
func CheckOpenFiles(workers int) error {
	var limit syscall.Rlimit // the Go runtime has raised the soft limit to the hard limit
	needs := uint64(baseFiles + workerFiles*max(workers, 1))
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= needs/2 {
		return nil //nolint:nilerr // the limit is unknown
	}
	return fmt.Errorf("the limit of open files is %d, but %s may need %d; run ulimit -n %d before mini, or use fewer workers",
		limit.Cur, text.Count(workers, "worker"), needs, max(needs, 1024))
}

// FreeSpace returns the free bytes on a folder's disk that this user may use. It returns false
// if the number is unknown.
func FreeSpace(dir string) (int64, bool) {
	n, err := freeBytes(dir)
	return int64(min(n, math.MaxInt64)), err == nil
}

// freeBytes returns the free bytes on a folder's disk that this user may use.
func freeBytes(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
