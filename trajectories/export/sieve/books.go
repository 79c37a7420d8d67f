package sieve

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories/export"
)

// Bounds of what is kept for the report: beyond, things are only counted.
const (
	maxExamples = 3
	maxReasons  = 500
	maxPairs    = 10_000
	maxFound    = 10_000
	maxNames    = 10_000 // different repositories, models ...
)

// books are what happened so far.
type books struct {
	cfg      Config
	attempts int
	kept     int
	dropped  map[Reason]*Dropped
	found    []Found
	// secretsIn, kinds: attempts with secrets, and how many of which kind.
	secretsIn  int
	kinds      counts
	secretMore int
	pairs      []Pair
	exact      int
	near       int
	tests      tests // that were let through
	splits     map[string]*SplitCount
	splitKeys  map[string]bool
	repos      counts
	models     counts
	verdicts   counts
	classes    counts
	tokens     []int64
	unknown    int // without a count of tokens
	rows       int
	passed     []string
}

func newBooks(cfg Config, passed []string) *books {
	b := &books{
		cfg: cfg, dropped: map[Reason]*Dropped{}, kinds: counts{}, passed: passed,
		splits: map[string]*SplitCount{}, splitKeys: map[string]bool{},
		repos: counts{}, models: counts{}, verdicts: counts{}, classes: counts{},
	}
	for _, s := range cfg.Splits {
		b.splits[s.Name] = &SplitCount{Name: s.Name, Asked: s.Share}
	}
	return b
}

// counts are how often names came.
type counts map[string]int

func (c counts) add(name string, n int) {
	if _, ok := c[name]; !ok && len(c) >= maxNames {
		name = "(others)"
	}
	c[name] += n
}

// list is the most frequent first.
func (c counts) list() []Count {
	list := make([]Count, 0, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		list = append(list, Count{name, c[name]})
	}
	slices.SortStableFunc(list, func(a, b Count) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

func (b *books) drop(it *export.Item, reason Reason) {
	d := b.dropped[reason]
	if d == nil && len(b.dropped) >= maxReasons {
		kind, _, _ := strings.Cut(string(reason), ": ")
		reason = because(kind, "(others)")
		d = b.dropped[reason]
	}
	if d == nil {
		d = &Dropped{Reason: reason}
		b.dropped[reason] = d
	}
	d.Attempts++
	if len(d.Examples) < maxExamples {
		d.Examples = append(d.Examples, nameOf(it))
	}
}

func (b *books) keep(it *export.Item, split, key string) {
	b.kept++
	b.repos.add(orNone(it.Repo), 1)
	b.models.add(orNone(it.Header.ModelName), 1)
	b.verdicts.add(orNone(it.Verdict), 1)
	b.classes.add(classOf(it), 1)
	if it.Tokens > 0 {
		b.tokens = append(b.tokens, it.Tokens)
	} else {
		b.unknown++
	}
	if b.cfg.Training {
		b.tests.add(testSet(it), it.InstanceID)
	}
	if c := b.splits[split]; c != nil {
		c.Attempts++
		if !b.splitKeys[key] {
			b.splitKeys[key] = true
			c.Keys++
		}
	}
}

// Wrote says that an attempt that was kept became rows of a split; rows of
// several attempts are said once, of any of them.
func (s *Sieve) Wrote(_ *export.Item, split string, rows int) {
	s.report.rows += rows
	if c := s.report.splits[split]; c != nil {
		c.Rows += rows
	}
}

func (b *books) secrets(found []Found) {
	b.secretsIn++
	for _, f := range found {
		b.kinds.add(f.Kind, f.Count)
		if len(b.found) < maxFound {
			b.found = append(b.found, f)
		} else {
			b.secretMore++
		}
	}
}

func (b *books) secretRefusal() error {
	if b.secretsIn == 0 {
		return nil
	}
	first := b.found[0]
	return fmt.Errorf("nothing is exported: this has what looks like secrets, in %s; the first is in %s, record %d: %s; "+
		"look at them, or give --secrets redact or --secrets drop", plural(b.secretsIn, "attempt"), printable(first.File), first.Record, first.Kind)
}

func (b *books) pair(name string, p pair, dropped bool) {
	if p.exact {
		b.exact++
	} else {
		b.near++
	}
	if len(b.pairs) < maxPairs {
		b.pairs = append(b.pairs, Pair{Kept: p.of, Like: name, Likeness: math.Round(p.likeness*1000) / 1000, Exact: p.exact, Dropped: dropped})
	}
}
