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

// Split is a part of the rows.
type Split struct {
	Name  string
	Share float64 // greater than 0, at most 1
}

// SplitBy is what is kept together in one split.
type SplitBy string

// The values of SplitBy. Attempts on an instance are always kept together.
const (
	ByInstance SplitBy = "instance" // the default
	ByRepo     SplitBy = "repo"
)

const splitExample = "--split train=0.95,val=0.05"

// splitName matches names that are valid in file names on all systems.
var splitName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

// ParseSplits parses splits such as "train=0.95,val=0.05".
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
		folded := strings.ToLower(s.Name) // some file systems ignore case
		switch {
		case !splitName.MatchString(s.Name):
			return fmt.Errorf("--split: %s is not a valid file name; use letters, digits, - and _, as in %s", quoted(s.Name), splitExample)
		case seen[folded]:
			return fmt.Errorf("--split: %s is a duplicate", s.Name)
		case !(s.Share > 0 && s.Share <= 1): // also true for NaN
			return fmt.Errorf("--split: the share of %s is %v; shares must be above 0 and at most 1, as in %s", s.Name, s.Share, splitExample)
		}
		seen[folded] = true
		sum += s.Share
	}
	if len(splits) > 0 && math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("--split: the shares add up to %.6g, not 1", sum)
	}
	return nil
}

// SplitOf returns the name of an attempt's split, empty if there is only one. It
// depends only on the seed and on the instance or repository, not on other attempts.
func (f *Filter) SplitOf(it *export.Item) string {
	if len(f.cfg.Splits) == 0 {
		return ""
	}
	at, sum := position(f.cfg.Seed, f.keyOf(it)), 0.0
	for _, split := range f.cfg.Splits {
		if sum += split.Share; at < sum {
			return split.Name
		}
	}
	return f.cfg.Splits[len(f.cfg.Splits)-1].Name
}

// keyOf returns what is kept together. An attempt without a repository is kept with
// its instance.
func (f *Filter) keyOf(it *export.Item) string {
	if f.cfg.SplitBy == ByRepo && it.Repo != "" {
		return "repo:" + strings.ToLower(it.Repo)
	}
	return "instance:" + it.InstanceID
}

// position returns a number from 0 to 1 made from the hash of a key.
func position(seed uint64, key string) float64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), key...))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
