package sieve

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories/export"
)

// Split is a part of the rows.
type Split struct {
	Name  string
	Share float64 // of all, above 0 to 1
}

// SplitBy is what stays together in one split.
type SplitBy string

// What stays together. Attempts of one instance always do.
const (
	ByInstance SplitBy = "instance" // the default
	ByRepo     SplitBy = "repo"
)

const exampleSplit = "--split train=0.95,val=0.05"

// splitName is what may name a file on any system.
var splitName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

// ParseSplits reads "train=0.95,val=0.05".
func ParseSplits(text string) ([]Split, error) {
	var splits []Split
	for part := range strings.SplitSeq(text, ",") {
		name, number, ok := strings.Cut(strings.TrimSpace(part), "=")
		share, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("--split %s: %s is not NAME=SHARE; write it as %s", quoted(text), quoted(part), exampleSplit)
		}
		splits = append(splits, Split{name, share})
	}
	return splits, checkSplits(splits, "")
}

func checkSplits(splits []Split, by SplitBy) error {
	if by != "" && by != ByInstance && by != ByRepo {
		return fmt.Errorf("--split-by %s is not one of %s, %s", quoted(string(by)), ByInstance, ByRepo)
	}
	sum, seen := 0.0, map[string]bool{}
	for _, s := range splits {
		folded := strings.ToLower(s.Name) // some file systems make no difference
		switch {
		case !splitName.MatchString(s.Name):
			return fmt.Errorf("--split: %s cannot name a file; letters, digits, - and _ can, as in %s", quoted(s.Name), exampleSplit)
		case seen[folded]:
			return fmt.Errorf("--split: %s is there twice", s.Name)
		case !(s.Share > 0 && s.Share <= 1): // NaN too
			return fmt.Errorf("--split: the share of %s is %v; shares are above 0 and at most 1, as in %s", s.Name, s.Share, exampleSplit)
		}
		seen[folded] = true
		sum += s.Share
	}
	if len(splits) > 0 && math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("--split: the shares add up to %.6g, and have to be 1", sum)
	}
	return nil
}

// SplitOf is the name of the split that an attempt is in; empty where there is
// only one. It depends on the seed and on the attempt's instance or repository
// alone, so what else is exported moves nothing.
func (s *Sieve) SplitOf(it *export.Item) string {
	if len(s.cfg.Splits) == 0 {
		return ""
	}
	at, sum := position(s.cfg.Seed, s.keyOf(it)), 0.0
	for _, split := range s.cfg.Splits {
		if sum += split.Share; at < sum {
			return split.Name
		}
	}
	return s.cfg.Splits[len(s.cfg.Splits)-1].Name
}

// keyOf is what stays together. An attempt that knows no repository is on its
// own with its instance.
func (s *Sieve) keyOf(it *export.Item) string {
	if s.cfg.SplitBy == ByRepo && it.Repo != "" {
		return "repo:" + strings.ToLower(it.Repo)
	}
	return "instance:" + it.InstanceID
}

// position is a place from 0 to 1 that a key has by its hash.
func position(seed uint64, key string) float64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), key...))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
