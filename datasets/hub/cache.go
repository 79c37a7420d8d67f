package hub

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/internal/lazyregexp"
)

// The cache has a directory per repository:
//
//	locks/<org>--<name>                           locked during a fetch
//	<org>--<name>/blobs/<checksum>                a complete, verified file
//	<org>--<name>/blobs/<checksum>.partial        an incomplete download
//	<org>--<name>/editions/<commit>-<hash>.json   a Snapshot; <commit> has 12 digits
//
// The checksum is the SHA-256 if the hub reports it (64 digits), or else the SHA-1 of the
// Git blob (40). File names from the hub are never used as paths.
//
// Lock files are outside the repositories' directories and are never removed: after a
// removal, two processes could each hold a lock. Other directories are created only when
// there is something to store, so that a mistyped name leaves none.
const (
	blobsDir      = "blobs"
	snapshotsDir  = "editions"
	locksDir      = "locks"
	partialSuffix = ".partial"
)

var blobName = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// folder returns a path in the directory of a repository.
func (h *Hub) folder(repo string, parts ...string) string {
	return filepath.Join(append([]string{h.dir, folderName(repo)}, parts...)...)
}

func folderName(repo string) string { return strings.Replace(repo, "/", "--", 1) }

// blob returns the name of an entry's file in the cache.
func (e entry) blob() string { return cmp.Or(e.sha256, e.sha1) }

// lockInterval is how often to retry a lock that another process holds.
const lockInterval = 100 * time.Millisecond

// lock locks a repository for a fetch. The operating system releases the lock if the
// process dies.
func (h *Hub) lock(ctx context.Context, repo string) (unlock func(), err error) {
	dir := filepath.Join(h.dir, locksDir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as in record
		return nil, h.diskError(err, 0)
	}
	l := flock.New(filepath.Join(dir, folderName(repo)), flock.SetPermissions(0o644))
	ok, err := l.TryLock()
	if err == nil && !ok {
		h.progress(Progress{Stage: Waiting, Repo: repo})
		_, err = l.TryLockContext(ctx, lockInterval)
		if ctx.Err() != nil {
			_ = l.Close() // the lock may have been acquired at the last moment
			return nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, h.diskError(err, 0)
	}
	return func() {
		for _, empty := range []string{h.folder(repo, blobsDir), h.folder(repo)} {
			_ = os.Remove(empty) // fails if not empty
		}
		_ = l.Close() // the end of the process also closes it
	}, nil
}
