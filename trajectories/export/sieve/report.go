package sieve

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Report says what became of the attempts. Its JSON is its form on disk.
type Report struct {
	Format   string    `json:"format"`   // "mini-export-report-1"
	Attempts int       `json:"attempts"` // that were looked at
	Kept     int       `json:"kept"`
	Rows     int       `json:"rows"` // that were written of them
	Dropped  []Dropped `json:"dropped"`

	Splits   []SplitCount `json:"splits,omitempty"`
	SplitBy  SplitBy      `json:"split_by,omitempty"`
	Repos    []Count      `json:"repositories"`
	Models   []Count      `json:"models"`
	Verdicts []Count      `json:"verdicts"`
	Classes  []Count      `json:"outcome_classes"`

	Tokens     Histogram       `json:"tokens"`
	Duplicates DuplicateReport `json:"duplicates"`
	Secrets    SecretReport    `json:"secrets"`
	// TestSets are attempts on them that were let through.
	TestSets []Count `json:"test_sets,omitempty"`
	// Notes are sentences about what one should know of it.
	Notes []string `json:"notes,omitempty"`
}

// ReportFormat names the form of the report's JSON.
const ReportFormat = "mini-export-report-1"

// Dropped are the attempts that one reason kept out; the first few are named.
type Dropped struct {
	Reason   Reason   `json:"reason"`
	Attempts int      `json:"attempts"`
	Examples []string `json:"examples"`
}

// Count is how many attempts have a name.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"attempts"`
}

// SplitCount is what came into a split. Keys are its instances or repositories.
type SplitCount struct {
	Name     string  `json:"name"`
	Asked    float64 `json:"asked"`
	Share    float64 `json:"share"` // of the attempts
	Attempts int     `json:"attempts"`
	Keys     int     `json:"keys"`
	Rows     int     `json:"rows"`
}

// DuplicateReport names pairs that are alike: all, up to some thousands.
type DuplicateReport struct {
	Threshold float64 `json:"threshold"` // 0: only exact copies, and none dropped
	Exact     int     `json:"exact"`
	Near      int     `json:"near"`
	Pairs     []Pair  `json:"pairs,omitempty"`
}

// Pair is an attempt that is like one that was kept before it.
type Pair struct {
	Kept     string  `json:"kept"`
	Like     string  `json:"like"`
	Likeness float64 `json:"likeness"`
	Exact    bool    `json:"exact,omitempty"`
	Dropped  bool    `json:"dropped"`
}

// SecretReport says where secrets were; what they are is nowhere.
type SecretReport struct {
	Mode     Secrets `json:"mode"`
	Attempts int     `json:"attempts"`
	// ByKind is how often which were found.
	ByKind map[string]int `json:"kinds,omitempty"`
	Found  []Found        `json:"found,omitempty"`
	More   int            `json:"more,omitempty"` // places that are not named
}

// Report is what happened so far; at the end, of all.
func (s *Sieve) Report() *Report {
	b := s.report
	r := &Report{
		Format: ReportFormat, Attempts: b.attempts, Kept: b.kept, Rows: b.rows,
		Repos: b.repos.list(), Models: b.models.list(), Verdicts: b.verdicts.list(), Classes: b.classes.list(),
		Tokens:     newHistogram(b.tokens, b.unknown, s.cfg.Tokenizer),
		Duplicates: DuplicateReport{Threshold: s.cfg.Dedupe, Exact: b.exact, Near: b.near, Pairs: b.pairs},
		Secrets: SecretReport{
			Mode: s.cfg.Secrets, Attempts: b.secretsIn, ByKind: b.kinds, Found: b.found, More: b.secretMore,
		},
		TestSets: counts(b.tests.attempts).list(),
	}
	for _, reason := range slices.Sorted(maps.Keys(b.dropped)) {
		r.Dropped = append(r.Dropped, *b.dropped[reason])
	}
	slices.SortStableFunc(r.Dropped, func(a, b Dropped) int { return b.Attempts - a.Attempts })
	if len(s.cfg.Splits) > 0 {
		r.SplitBy = cmp.Or(s.cfg.SplitBy, ByInstance)
		r.Splits = b.splitCounts()
	}
	r.Notes = b.notes(r)
	return r
}

func (b *books) splitCounts() []SplitCount {
	all := 0
	for _, c := range b.splits {
		all += c.Attempts
	}
	var list []SplitCount
	for _, s := range b.cfg.Splits {
		c := *b.splits[s.Name]
		if all > 0 {
			c.Share = math.Round(float64(c.Attempts)/float64(all)*1e4) / 1e4
		}
		list = append(list, c)
	}
	return list
}

// notes are what numbers alone would hide.
func (b *books) notes(r *Report) []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	keys := 0
	for _, s := range r.Splits {
		keys += s.Keys
	}
	for _, s := range r.Splits {
		switch {
		case s.Attempts == 0 && r.Kept > 0:
			add("the split %s is empty: whole %s go by their hash, and there are %d", s.Name, by(r.SplitBy), keys)
		case r.Kept > 0 && farOff(s):
			add("the split %s has %s of the attempts, and %s was asked for: whole %s go by their hash, and there are %d",
				s.Name, percent(s.Share), percent(s.Asked), by(r.SplitBy), keys)
		}
	}
	for _, t := range r.TestSets {
		add("%s of the test set %s: what is trained on them cannot be measured by it", plural(t.Count, "attempt"), t.Name)
	}
	if r.Duplicates.Threshold == 0 && r.Duplicates.Exact > 0 {
		add("%s of earlier attempts stayed in; --dedupe 1 drops them", plurals(r.Duplicates.Exact, "exact copy", "exact copies"))
	}
	if n := len(b.passed); n > 0 {
		add("values that are short, or a plain word, are not looked for: that of %s", names(b.passed, 5))
	}
	left := 0
	for _, f := range b.found {
		if f.Left {
			left += f.Count
		}
	}
	if left > 0 {
		add("%s in patches stayed in them, since a patch without would be another one", plural(left, "likely secret"))
	}
	return notes
}

// farOff says that a share is another one than was asked for: by a twentieth of
// all, or by half of itself.
func farOff(s SplitCount) bool {
	return math.Abs(s.Share-s.Asked) > min(0.05, s.Asked/2)
}

func by(b SplitBy) string {
	if b == ByRepo {
		return "repositories"
	}
	return "instances"
}
