package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/runner/report"
)

// Free space below which a disk is pointed out, in bytes: of the folder of
// runs, of the datasets' cache, and of the engine.
const (
	littleForRuns   = 2 << 30
	littleForCache  = 1 << 30
	littleForImages = 20 << 30
)

// settings is about flags, files and variables: the other checks go by what
// they say.
func (e *examination) settings(context.Context) []Check {
	if e.Settings == nil {
		return nil
	}
	return []Check{{"settings", Fail, e.Settings.Error(), "mend it, or leave it out; the checks below go by mini's own defaults"}}
}

// disks is about the folders that mini itself writes to.
func (e *examination) disks(context.Context) []Check {
	runs := folder("runs", e.Dir, littleForRuns, "make room, or give another folder with -o")
	if e.Unfit != nil {
		runs = Check{"runs", Fail, e.Unfit.Error(), "give another folder with -o"}
	}
	return []Check{
		runs,
		folder("cache", e.Cache, littleForCache, "make room, or move the cache with XDG_CACHE_HOME"),
	}
}

// folder says whether a folder can be written to, and how much fits.
func folder(name, dir string, little uint64, advice string) Check {
	if dir == "" {
		return Check{name, Warn, "the system names no folder for it", "set XDG_CACHE_HOME, or HOME"}
	}
	there := existing(dir)
	if err := writable(there); err != nil {
		_, elsewhere, _ := strings.Cut(advice, ", or ")
		return Check{name, Warn, fmt.Sprintf("%s cannot be written to: %v", there, err), elsewhere}
	}
	bytes, err := free(there)
	switch {
	case err != nil:
		return Check{name, Warn, fmt.Sprintf("%s: %v", there, err), advice}
	case bytes < little:
		return Check{name, Warn, fmt.Sprintf("%s free in %s", report.Size(int64(bytes)), dir), advice}
	}
	return Check{name, OK, fmt.Sprintf("%s free in %s", report.Size(int64(bytes)), dir), ""}
}

// existing is the folder itself, or the first above it that is there.
func existing(dir string) string {
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

// writable tries it: permissions alone do not say whether a disk is mounted
// for reading only.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".mini-doctor-*")
	if err != nil {
		if p, ok := errors.AsType[*os.PathError](err); ok {
			return p.Err
		}
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// plan is about the images of the instances that are to be run, and the disk
// they go to.
func (e *examination) plan(ctx context.Context) []Check {
	d, err := e.describe(ctx)
	if err != nil && e.Plan == nil {
		return nil
	}
	disk, room, known := e.imageDisk(d.RootDir, d.Host)
	if e.Plan == nil {
		return disk
	}
	p, perr := e.Plan(ctx)
	absent, isAbsent := errors.AsType[*AbsentError](perr)
	switch {
	case isAbsent:
		return append(disk, Check{"images", Warn, absent.Error(), "fetch it, and ask again: mini datasets fetch " + absent.Set})
	case errors.Is(perr, context.DeadlineExceeded):
		return append(disk, Check{"images", Warn, "the rows could not be had in time to count images", "fetch the dataset first: mini datasets fetch SET"})
	case perr != nil:
		advice := "mini datasets list says what --subset can be"
		if e.Hint != nil && e.Hint(perr) != "" {
			advice = e.Hint(perr)
		}
		return append(disk, Check{"images", Fail, perr.Error(), advice})
	case e.onHost():
		return []Check{{"images", OK, report.Count(p.Instances, "instance") + "; the " + e.Environment + " environment needs no images", ""}}
	case p.Problem != "" || err != nil:
		return append(disk, Check{"images", Warn, fmt.Sprintf("%s, %s; which are here only the engine knows", report.Count(p.Instances, "instance"), report.Count(p.Images, "image")), "see docker above"})
	}
	c := Check{"images", OK, fmt.Sprintf("%s, %s: all are here", report.Count(p.Instances, "instance"), report.Count(p.Images, "image")), ""}
	if p.Missing > 0 {
		c.Finding = fmt.Sprintf("%s, %s: %d to pull, roughly %s", report.Count(p.Instances, "instance"), report.Count(p.Images, "image"), p.Missing, report.Size(p.MissingBytes))
		switch {
		case known && room < uint64(p.MissingBytes):
			c.Mark, c.Finding = Warn, c.Finding+fmt.Sprintf(", and %s free", report.Size(int64(room)))
			c.Advice = "make room (docker system df shows what takes it), or run a part: --slice 0:50"
		case !known:
			c.Finding += "; how much is free where the engine keeps them cannot be told from here"
		}
	}
	return append(disk, c)
}

// AbsentError says that a dataset would have to be fetched.
type AbsentError struct{ Set string }

func (e *AbsentError) Error() string {
	return e.Set + " was not fetched yet, so its images are not known"
}

// imageDisk is the free space where the engine keeps images, as far as that is
// on this machine: a socket may lead into a virtual one.
func (e *examination) imageDisk(root, host string) (checks []Check, room uint64, known bool) {
	if info, err := os.Stat(root); !strings.HasPrefix(host, "unix://") || root == "" || err != nil || !info.IsDir() {
		return nil, 0, false
	}
	room, err := free(root)
	if err != nil {
		return nil, 0, false
	}
	c := Check{"disk", OK, fmt.Sprintf("%s free in %s, for images", report.Size(int64(room)), root), ""}
	if room < littleForImages {
		c.Mark, c.Advice = Warn, "make room: docker system df shows what takes it, docker image prune removes what nothing uses"
	}
	return []Check{c}, room, true
}

// programs is about what the local environment uses of this machine.
func (e *examination) programs(context.Context) []Check {
	var missing []string
	for _, name := range []string{"bash", "git"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) == 0:
		return []Check{{"programs", OK, "bash and git are here, for sandboxes without an engine", ""}}
	case e.onHost():
		return []Check{{"programs", Warn, "missing: " + strings.Join(missing, ", "), "install what is missing: commands run in bash, and patches are made by git"}}
	}
	return []Check{{"programs", OK, "missing: " + strings.Join(missing, ", ") + ", which only sandboxes without an engine need", ""}}
}

// Open files of a mini: its own, and those of each worker (two connections to
// the engine, one to the model, the journal, and some to spare).
const (
	ownFiles    = 64
	workerFiles = 12
)

// filesOf is how many files a mini with so many workers may have open.
func filesOf(workers int) uint64 { return uint64(ownFiles + workerFiles*max(workers, 1)) }

// Files refuses so many workers where they could hardly have the files open
// that they need: half of what the check reckons with.
func Files(workers int) error {
	limit, ok := openFiles()
	needs := filesOf(workers)
	if !ok || limit >= needs/2 {
		return nil
	}
	return fmt.Errorf("%d files may be open at once, and %s may need %d; say ulimit -n %d before mini, or take fewer workers",
		limit, report.Count(workers, "worker"), needs, max(needs, 1024))
}

func (e *examination) files(context.Context) []Check {
	limit, ok := openFiles()
	if !ok {
		return nil
	}
	needs := filesOf(e.Workers)
	if limit < needs {
		return []Check{{
			"files", Warn, fmt.Sprintf("%d may be open at once, and %s may need %d", limit, report.Count(e.Workers, "worker"), needs),
			fmt.Sprintf("ulimit -n %d before mini, or fewer workers", max(needs, 1024)),
		}}
	}
	return []Check{{"files", OK, fmt.Sprintf("%d may be open at once; %s may need %d", limit, report.Count(e.Workers, "worker"), needs), ""}}
}

func (e *examination) terminal(context.Context) []Check {
	if e.Terminal == "" {
		return nil
	}
	return []Check{{"terminal", OK, e.Terminal, ""}}
}
