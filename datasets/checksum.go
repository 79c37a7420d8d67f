package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

// knownSum returns the checksum of a file when it was downloaded; "" if unknown.
func (s Source) knownSum(i int) string {
	if i < len(s.SHA256) {
		return s.SHA256[i]
	}
	return ""
}

// verify compares the checksum of a file with the known one.
func (s Source) verify(i int, sum string) error {
	want := s.knownSum(i)
	if want == "" || want == sum {
		return nil
	}
	text := s.label(i) + ": damaged in the cache"
	if s.FetchCommand != "" {
		text += "; run " + printable(s.FetchCommand)
	}
	return &dataError{text}
}

// checkDamage checks whether a parser failed because the file is damaged. If the
// checksum is wrong, it returns an error about that, and otherwise err.
func (s Source) checkDamage(ctx context.Context, i int, sh *shard, err error) error {
	if err == nil || errors.Is(err, errStop) || ctx.Err() != nil || s.knownSum(i) == "" {
		return err
	}
	sum := sha256.New()
	if _, readErr := io.Copy(sum, &ctxReader{ctx, sh.reader()}); readErr != nil {
		return err // the file cannot be read
	}
	if damaged := s.verify(i, hex.EncodeToString(sum.Sum(nil))); damaged != nil {
		return damaged
	}
	return err
}
