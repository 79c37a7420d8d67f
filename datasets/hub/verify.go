package hub

import (
	"context"
	"crypto/sha1" //nolint:gosec // required by Git
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

// verify reports whether the files of a snapshot in the cache are undamaged. It updates the
// checksums in s, because the recorded ones may be those of a damaged file.
func (h *Hub) verify(ctx context.Context, s *Snapshot) (bool, error) {
	for i, f := range s.Files {
		sum, intact, err := h.checkFile(ctx, f)
		if err != nil || !intact {
			return false, err
		}
		s.Files[i].SHA256 = sum
	}
	return true, nil
}

// checkFile reports whether a file is in the cache and undamaged, and returns its SHA-256.
func (h *Hub) checkFile(ctx context.Context, f File) (sum string, intact bool, err error) {
	if !hasSize(f.Path, f.Size) {
		return "", false, nil
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return "", false, h.diskError(err, 0)
	}
	defer file.Close()                                          //nolint:errcheck // read only
	defer context.AfterFunc(ctx, func() { _ = file.Close() })() // ends the copy
	full, git := sha256.New(), gitHash(f.Size)
	_, err = io.Copy(io.MultiWriter(full, git), io.LimitReader(file, f.Size))
	switch {
	case ctx.Err() != nil:
		return "", false, context.Cause(ctx)
	case err != nil: // a read error of the disk: download the file again
		return "", false, nil
	}
	sum = hex.EncodeToString(full.Sum(nil))
	return sum, f.Blob == sum || f.Blob == hex.EncodeToString(git.Sum(nil)), nil
}

// gitHash returns a hash for the id of a Git blob of this size.
func gitHash(size int64) hash.Hash {
	h := sha1.New()                            //nolint:gosec // required by Git
	_, _ = fmt.Fprintf(h, "blob %d\x00", size) // never fails
	return h
}
