package hub

import (
	"context"
	"crypto/sha1" //nolint:gosec // what Git names its blobs by
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

// verify says whether the files of an edition in the cache are what their names
// say, and writes their checksums into it anew: those of a record may be from
// when a file was damaged already.
func (h *Hub) verify(ctx context.Context, e *Edition) (bool, error) {
	for i, f := range e.Files {
		sum, whole, err := h.whole(ctx, f)
		if err != nil || !whole {
			return false, err
		}
		e.Files[i].SHA256 = sum
	}
	return true, nil
}

// whole says whether a file is in the cache and right, and its SHA-256.
func (h *Hub) whole(ctx context.Context, f File) (sum string, ok bool, err error) {
	if !has(f.Path, f.Size) {
		return "", false, nil
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return "", false, h.diskError(err, 0)
	}
	defer file.Close()                                          //nolint:errcheck // read only
	defer context.AfterFunc(ctx, func() { _ = file.Close() })() // which ends the copy
	all, git := sha256.New(), gitHash(f.Size)
	_, err = io.Copy(io.MultiWriter(all, git), io.LimitReader(file, f.Size))
	switch {
	case ctx.Err() != nil:
		return "", false, context.Cause(ctx)
	case err != nil: // a disk that has lost it: what is there is to be replaced
		return "", false, nil
	}
	sum = hex.EncodeToString(all.Sum(nil))
	return sum, f.Blob == sum || f.Blob == hex.EncodeToString(git.Sum(nil)), nil
}

// gitHash is the beginning of Git's name for a blob of this size.
func gitHash(size int64) hash.Hash {
	h := sha1.New()                            //nolint:gosec // as above
	_, _ = fmt.Fprintf(h, "blob %d\x00", size) // a hash takes everything
	return h
}
