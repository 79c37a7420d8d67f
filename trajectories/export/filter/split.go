package filter

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

// Split is a part of an export, such as "train".
type Split struct {
	Name  string
	Share float64 // requested share of the instances or repositories, above 0 and at most 1
}

// SplitBy determines which attempts must be in the same split.
type SplitBy string

// The values of SplitBy.
const (
	ByInstance SplitBy = "instance" // those on the same instance; the default
	ByRepo     SplitBy = "repo"     // those on the same repository
)

const splitExample = "--split train=0.95,val=0.05"

// splitName matches names that are valid file names on all systems.
var splitName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

// ParseSplits parses and checks splits such as "train=0.95,val=0.05".
func ParseSplits(text string) ([]Split, error) {
	var splits []Split
	for part := range strings.SplitSeq(text, ",") {
		name, number, ok := strings.Cut(strings.TrimSpace(part), "=")
		share, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("--split %s: %s is not NAME=SHARE; use %s", quoted(text), quoted(part), splitExample)
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
		lowerName := strings.ToLower(s.Name) // some file systems ignore case
		switch {
		case !splitName.MatchString(s.Name):
			return fmt.Errorf("--split: %s is not a valid file name; use letters, digits, - and _, as in %s", quoted(s.Name), splitExample)
		case seen[lowerName]:
			return fmt.Errorf("--split: %s is a duplicate", s.Name)
		case !(s.Share > 0 && s.Share <= 1): // also true for NaN
			return fmt.Errorf("--split: the share of %s is %v; shares must be above 0 and at most 1, as in %s", s.Name, s.Share, splitExample)
		}
		seen[lowerName] = true
		sum += s.Share
	}
	if len(splits) > 0 && math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("--split: the shares add up to %.6g, not 1", sum)
	}
	return nil
}

// SplitOf returns the name of an attempt's split, or "" without Config.Splits. The split
// depends only on the seed and on the instance or repository, not on other attempts.
func (f *Filter) SplitOf(item *export.Item) string {
	if len(f.cfg.Splits) == 0 {
		return ""
	}
	hash, sum := hashKey(f.cfg.Seed, f.splitKey(item)), 0.0
	for _, split := range f.cfg.Splits {
		if sum += split.Share; hash < sum {
			return split.Name
		}
	}
	return f.cfg.Splits[len(f.cfg.Splits)-1].Name
}

// splitKey returns a key that attempts have in common if they must be in the same split.
// For an attempt without a repository, it is the instance.
func (f *Filter) splitKey(item *export.Item) string {
	if f.cfg.SplitBy == ByRepo && item.Repo != "" {
		return "repo:" + strings.ToLower(item.Repo)
	}
	return "instance:" + item.InstanceID
}

// hashKey returns the hash of a key and the seed as a number in [0, 1).
func hashKey(seed uint64, key string) float64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), key...))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
