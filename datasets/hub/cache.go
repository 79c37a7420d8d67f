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

// The cache has a folder for every repository:
//
//	locks/<org>--<name>                           held while the repository is fetched
//	<org>--<name>/blobs/<checksum>                a file, whole and right
//	<org>--<name>/blobs/<checksum>.partial        the start of one
//	<org>--<name>/editions/<commit>-<hash>.json   a revision's files, see Edition
//
// The checksum is the file's SHA-256 where the hub tells it (64 digits), else
// the SHA-1 of Git's blob (40). Names from the hub never name a file here.
//
// Locks are beside the repositories, and stay: whoever removed one could leave
// two others with a lock each. A folder is made when there is something to put
// into it, so that a mistyped name has none.
const (
	blobsDir    = "blobs"
	editionsDir = "editions"
	locksDir    = "locks"
	partialEnd  = ".partial"
)

var blobName = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// folder is a path in the cache, below the folder of a repository.
func (h *Hub) folder(repo string, parts ...string) string {
	return filepath.Join(append([]string{h.dir, folderName(repo)}, parts...)...)
}

func folderName(repo string) string { return strings.Replace(repo, "/", "--", 1) }

// blob is the name of an entry's file in the cache.
func (e entry) blob() string { return cmp.Or(e.sha256, e.sha1) }

// lockEvery is how often a lock is tried that another process holds.
const lockEvery = 100 * time.Millisecond

// lock waits for the turn at a repository. The system lets go of the lock of a
// process that dies.
func (h *Hub) lock(ctx context.Context, repo string) (unlock func(), err error) {
	dir := filepath.Join(h.dir, locksDir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as in record
		return nil, h.diskError(err, 0)
	}
	l := flock.New(filepath.Join(dir, folderName(repo)), flock.SetPermissions(0o644))
	ok, err := l.TryLock()
	if err == nil && !ok {
		h.progress(Progress{Stage: Waiting, Repo: repo})
		_, err = l.TryLockContext(ctx, lockEvery)
		if ctx.Err() != nil {
			_ = l.Close() // it may have been taken at the last moment
			return nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, h.diskError(err, 0)
	}
	return func() {
		for _, empty := range []string{h.folder(repo, blobsDir), h.folder(repo)} {
			_ = os.Remove(empty) // what is not empty stays
		}
		_ = l.Close() // the process's end would do it too
	}, nil
}
