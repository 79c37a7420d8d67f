package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

// expected is the checksum that a file is known to have had, "" where nobody
// knows.
func (s Source) expected(i int) string {
	if i < len(s.SHA256) {
		return s.SHA256[i]
	}
	return ""
}

// verify compares the checksum of a file with what it is known to have had.
func (s Source) verify(i int, sum string) error {
	want := s.expected(i)
	if want == "" || want == sum {
		return nil
	}
	text := s.label(i) + ": damaged in the cache"
	if s.Mend != "" {
		text += "; " + printable(s.Mend) + " mends it"
	}
	return &badData{text}
}

// blame finds out whether damage is why a file cannot be read: that says more
// than what a parser stumbled over.
func (s Source) blame(ctx context.Context, i int, sh *shard, err error) error {
	if err == nil || errors.Is(err, errEnough) || ctx.Err() != nil || s.expected(i) == "" {
		return err
	}
	sum := sha256.New()
	if _, rerr := io.Copy(sum, &heedful{ctx, sh.all()}); rerr != nil {
		return err // it cannot be read for another reason, and that is err's
	}
	if damaged := s.verify(i, hex.EncodeToString(sum.Sum(nil))); damaged != nil {
		return damaged
	}
	return err
}
