package filter

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories/export"
)

// Limits of the details in the report. Beyond them, attempts are only counted.
const (
	maxExamples = 3
	maxReasons  = 500
	maxPairs    = 10_000
	maxFound    = 10_000
	maxNames    = 10_000 // of different repositories, models ...
)

// stats are the statistics of a filter.
type stats struct {
	cfg       Config
	attempts  int
	kept      int
	dropped   map[DropReason]*Dropped
	locations []SecretLocation
	// secretsIn counts attempts with secrets, kinds the secrets of each kind.
	secretsIn     int
	kinds         counts
	moreSecrets   int
	pairs         []DuplicatePair
	exact         int
	near          int
	testSets      testCounts // attempts of test sets that were accepted
	splits        map[string]*SplitStats
	splitKeys     map[string]bool
	repos         counts
	models        counts
	verdicts      counts
	classes       counts
	tokens        []int64
	unknownLength int // attempts with unknown length
	rows          int
	skippedNames  []string
}

func newStats(cfg Config, passed []string) *stats {
	b := &stats{
		cfg: cfg, dropped: map[DropReason]*Dropped{}, kinds: counts{}, skippedNames: passed,
		splits: map[string]*SplitStats{}, splitKeys: map[string]bool{},
		repos: counts{}, models: counts{}, verdicts: counts{}, classes: counts{},
	}
	for _, s := range cfg.Splits {
		b.splits[s.Name] = &SplitStats{Name: s.Name, Asked: s.Share}
	}
	return b
}

// counts counts names.
type counts map[string]int

func (c counts) add(name string, n int) {
	if _, ok := c[name]; !ok && len(c) >= maxNames {
		name = "(others)"
	}
	c[name] += n
}

// list returns the counts in descending order.
func (c counts) list() []Count {
	list := make([]Count, 0, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		list = append(list, Count{name, c[name]})
	}
	slices.SortStableFunc(list, func(a, b Count) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

func (s *stats) addDropped(it *export.Item, reason DropReason) {
	d := s.dropped[reason]
	if d == nil && len(s.dropped) >= maxReasons {
		kind, _, _ := strings.Cut(string(reason), ": ")
		reason = dropReason(kind, "(others)")
		d = s.dropped[reason]
	}
	if d == nil {
		d = &Dropped{Reason: reason}
		s.dropped[reason] = d
	}
	d.Attempts++
	if len(d.Examples) < maxExamples {
		d.Examples = append(d.Examples, nameOf(it))
	}
}

func (s *stats) addKept(it *export.Item, split, key string) {
	s.kept++
	s.repos.add(orNone(it.Repo), 1)
	s.models.add(orNone(it.Header.ModelName), 1)
	s.verdicts.add(orNone(it.Verdict), 1)
	s.classes.add(classOf(it), 1)
	if it.Tokens > 0 {
		s.tokens = append(s.tokens, it.Tokens)
	} else {
		s.unknownLength++
	}
	if s.cfg.Training {
		s.testSets.add(testSet(it), it.InstanceID)
	}
	if c := s.splits[split]; c != nil {
		c.Attempts++
		if !s.splitKeys[key] {
			s.splitKeys[key] = true
			c.Keys++
		}
	}
}

// AddRows adds rows of an accepted attempt to the statistics. Rows of several
// attempts are added once, for any of them.
func (f *Filter) AddRows(_ *export.Item, split string, rows int) {
	f.stats.rows += rows
	if c := f.stats.splits[split]; c != nil {
		c.Rows += rows
	}
}

func (s *stats) addSecrets(found []SecretLocation) {
	s.secretsIn++
	for _, f := range found {
		s.kinds.add(f.Kind, f.Count)
		if len(s.locations) < maxFound {
			s.locations = append(s.locations, f)
		} else {
			s.moreSecrets++
		}
	}
}

func (s *stats) secretsErr() error {
	if s.secretsIn == 0 {
		return nil
	}
	first := s.locations[0]
	return fmt.Errorf("nothing was exported: found likely secrets in %s; the first is in %s, record %d: %s; "+
		"inspect them, or use --secrets redact or --secrets drop", plural(s.secretsIn, "attempt"), printable(first.File), first.Record, first.Kind)
}

func (s *stats) addPair(name string, p match, dropped bool) {
	if p.exact {
		s.exact++
	} else {
		s.near++
	}
	if len(s.pairs) < maxPairs {
		s.pairs = append(s.pairs, DuplicatePair{Kept: p.name, Duplicate: name, Similarity: math.Round(p.similarity*1000) / 1000, Exact: p.exact, Dropped: dropped})
	}
}
