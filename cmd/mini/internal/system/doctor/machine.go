package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker"
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

// errNoEngine means that the environment needs no engine.
var errNoEngine = errors.New("no engine is needed")

// images checks the images of the instances to run, and the disk for them.
func (e *checker) images(ctx context.Context) []Check {
	var engine docker.Description
	err := errNoEngine
	if !configs.UsesCluster(e.Environment) {
		engine, err = e.describe(ctx)
	}
	if err != nil && e.PlanImages == nil {
		return nil
	}
	disk, free, isKnown := e.imageDisk(engine.RootDir, engine.Host)
	if e.PlanImages == nil {
		return disk
	}
	plan, planErr := e.PlanImages(ctx)
	notFetched, isNotFetched := errors.AsType[*NotFetchedError](planErr)
	switch {
	case isNotFetched:
		return append(disk, Check{"images", Warn, notFetched.Error(), "fetch it first: mini datasets fetch " + notFetched.Dataset})
	case errors.Is(planErr, context.DeadlineExceeded):
		return append(disk, Check{"images", Warn, "timeout while reading the rows to count images", "fetch the dataset first: mini datasets fetch SET"})
	case planErr != nil:
		advice := "mini datasets list shows the values of --subset"
		if e.Hint != nil && e.Hint(planErr) != "" {
			advice = e.Hint(planErr)
		}
		return append(disk, Check{"images", Fail, planErr.Error(), advice})
	case configs.UsesCluster(e.Environment):
		return []Check{{"images", OK, text.Count(plan.Instances, "instance") + "; the nodes of the cluster pull their images", ""}}
	case e.runsOnHost():
		return []Check{{"images", OK, text.Count(plan.Instances, "instance") + "; the " + e.Environment + " environment needs no images", ""}}
	case plan.Problem != "" || err != nil:
		return append(disk, Check{"images", Warn, fmt.Sprintf("%s, %s; without the engine it is unknown which are present", text.Count(plan.Instances, "instance"), text.Count(plan.Images, "image")), "see docker above"})
	}
	c := Check{"images", OK, fmt.Sprintf("%s, %s: all present", text.Count(plan.Instances, "instance"), text.Count(plan.Images, "image")), ""}
	if plan.Missing > 0 {
		c.Finding = fmt.Sprintf("%s, %s: %d to pull, roughly %s", text.Count(plan.Instances, "instance"), text.Count(plan.Images, "image"), plan.Missing, unit.Size(plan.MissingBytes))
		switch {
		case isKnown && free < uint64(plan.MissingBytes):
			c.Status, c.Finding = Warn, c.Finding+fmt.Sprintf(", and %s free", unit.Size(int64(free)))
			c.Advice = "free some space (docker system df shows its use), or run a part: --slice 0:50"
		case !isKnown:
			c.Finding += "; the free space of the engine's disk is unknown"
		}
	}
	return append(disk, c)
}

// NotFetchedError means that a dataset has not been fetched.
type NotFetchedError struct{ Dataset string }

func (e *NotFetchedError) Error() string {
	return e.Dataset + " has not been fetched, so its images are unknown"
}

// imageDisk checks the free space for images in root, the engine's data folder. isKnown is false
// if the engine is not on this machine, for example in a virtual machine, or if the free space
// cannot be read. free is in bytes.
func (e *checker) imageDisk(root, host string) (checks []Check, free uint64, isKnown bool) {
	if info, err := os.Stat(root); !strings.HasPrefix(host, "unix://") || root == "" || err != nil || !info.IsDir() {
		return nil, 0, false
	}
	free, err := freeBytes(root)
	if err != nil {
		return nil, 0, false
	}
	c := Check{"disk", OK, fmt.Sprintf("%s free in %s, for images", unit.Size(int64(free)), root), ""}
	if free < minFreeForImages {
		c.Status, c.Advice = Warn, "free some space: docker system df shows its use, docker image prune removes unused images"
	}
	return []Check{c}, free, true
}

// Numbers of open files that mini may need: independently of the workers, and for each worker
// (two connections to the engine, one to the model, the journal, and a reserve).
const (
	baseFiles   = 64
	workerFiles = 12
)

// filesNeeded returns the number of open files that mini may need with this number of workers.
func filesNeeded(workers int) uint64 { return uint64(baseFiles + workerFiles*max(workers, 1)) }

// CheckOpenFiles returns an error if the limit of open files is less than half of the number
// that the workers may need.
func CheckOpenFiles(workers int) error {
	limit, ok := maxOpenFiles()
	needs := filesNeeded(workers)
	if !ok || limit >= needs/2 {
		return nil
	}
	return fmt.Errorf("the limit of open files is %d, but %s may need %d; run ulimit -n %d before mini, or use fewer workers",
		limit, text.Count(workers, "worker"), needs, max(needs, 1024))
}
