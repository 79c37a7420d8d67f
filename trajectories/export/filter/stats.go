package filter

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories/export"
)

// Limits of the details in the report. The report has only counts of what exceeds them.
const (
	maxExamples  = 3      // of each DropReason and, in the text, of duplicates and secrets
	maxReasons   = 500    // different DropReasons
	maxPairs     = 10_000 // of duplicates
	maxLocations = 10_000 // of secrets
)

// stats are the statistics of a filter: the report, and what is listed in it at the end.
type stats struct {
	Report
	cfg           Config
	dropped       map[DropReason]*Dropped
	testSets      testCounts             // only accepted attempts
	splits        map[string]*SplitStats // by name
	splitKeys     map[string]bool        // see Filter.splitKey
	repos         counts
	models        counts
	verdicts      counts
	classes       counts
	tokens        []int64  // lengths of accepted attempts
	unknownLength int      // number of accepted attempts with unknown length
	skippedNames  []string // scanner.skippedNames
}

func newStats(cfg Config, skippedNames []string) *stats {
	b := &stats{
		cfg: cfg, dropped: map[DropReason]*Dropped{}, skippedNames: skippedNames,
		splits: map[string]*SplitStats{}, splitKeys: map[string]bool{},
		repos: counts{}, models: counts{}, verdicts: counts{}, classes: counts{},
	}
	b.Format, b.Duplicates.Threshold = ReportFormat, cfg.Dedupe
	b.Secrets.Policy, b.Secrets.ByKind = cfg.Secrets, counts{}
	for _, s := range cfg.Splits {
		b.splits[s.Name] = &SplitStats{Name: s.Name, RequestedShare: s.Share}
	}
	return b
}

// counts has numbers of attempts or secrets by name.
type counts map[string]int

// list returns the counts in descending order.
func (c counts) list() []Count {
	list := make([]Count, 0, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		list = append(list, Count{name, c[name]})
	}
	slices.SortStableFunc(list, func(a, b Count) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

func (s *stats) addDropped(item *export.Item, reason DropReason) {
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
		d.Examples = append(d.Examples, displayName(item))
	}
}

func (s *stats) addKept(item *export.Item, split, key string) {
	s.Kept++
	s.repos[orNone(item.Repo)]++
	s.models[orNone(item.Header.ModelName)]++
	s.verdicts[orNone(item.Verdict)]++
	s.classes[outcomeClass(item)]++
	if item.Tokens > 0 {
		s.tokens = append(s.tokens, item.Tokens)
	} else {
		s.unknownLength++
	}
	if s.cfg.Training {
		s.testSets.add(testSet(item), item.InstanceID)
	}
	if c := s.splits[split]; c != nil {
		c.Attempts++
		if !s.splitKeys[key] {
			s.splitKeys[key] = true
			c.GroupCount++
		}
	}
}

// AddRows counts an accepted attempt that was written, and its rows, in the statistics. The
// rows of a pair of attempts must be added only once, for either attempt.
func (f *Filter) AddRows(_ *export.Item, split string, rows int) {
	f.stats.Written++
	f.stats.Rows += rows
	if c := f.stats.splits[split]; c != nil {
		c.Rows += rows
	}
}

func (s *stats) addSecrets(found []SecretLocation) {
	s.Secrets.Attempts++
	for _, f := range found {
		s.Secrets.ByKind[f.Kind] += f.Count
		if len(s.Secrets.Locations) < maxLocations {
			s.Secrets.Locations = append(s.Secrets.Locations, f)
		} else {
			s.Secrets.Unlisted++
		}
	}
}

func (s *stats) secretsErr() error {
	if s.Secrets.Attempts == 0 {
		return nil
	}
	first := s.Secrets.Locations[0]
	return fmt.Errorf("nothing was exported: found likely secrets in %s; the first is in %s, record %d: %s; "+
		"inspect them, or use --secrets redact or --secrets drop", plural(s.Secrets.Attempts, "attempt"), text.Printable(first.File), first.Record, first.Kind)
}

func (s *stats) addPair(name string, p match, dropped bool) {
	if p.exact {
		s.Duplicates.Exact++
	} else {
		s.Duplicates.Near++
	}
	if len(s.Duplicates.Pairs) < maxPairs {
		s.Duplicates.Pairs = append(s.Duplicates.Pairs, DuplicatePair{Kept: p.name, Duplicate: name, Similarity: math.Round(p.similarity*1000) / 1000, Exact: p.exact, Dropped: dropped})
	}
}
