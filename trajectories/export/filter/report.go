package filter

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Report has the statistics of a filter. Exports contain it as JSON.
type Report struct {
	Format   string    `json:"format"`   // ReportFormat
	Attempts int       `json:"attempts"` // all attempts
	Kept     int       `json:"kept"`     // accepted attempts
	Written  int       `json:"written"`  // accepted attempts that the format can represent
	Rows     int       `json:"rows"`     // rows that were written
	Dropped  []Dropped `json:"dropped"`

	Splits   []SplitStats `json:"splits,omitempty"`
	SplitBy  SplitBy      `json:"split_by,omitempty"`
	Repos    []Count      `json:"repositories"`
	Models   []Count      `json:"models"`
	Verdicts []Count      `json:"verdicts"`
	Classes  []Count      `json:"outcome_classes"`

	Tokens     Histogram       `json:"tokens"`
	Duplicates DuplicateReport `json:"duplicates"`
	Secrets    SecretReport    `json:"secrets"`
	// TestSets counts accepted attempts by test set.
	TestSets []Count `json:"test_sets,omitempty"`
	// Notes are sentences that explain the numbers.
	Notes []string `json:"notes,omitempty"`
}

// ReportFormat identifies the JSON format of the report.
const ReportFormat = "mini-export-report-1"

// Dropped counts the attempts that were dropped for one reason.
type Dropped struct {
	Reason   DropReason `json:"reason"`
	Attempts int        `json:"attempts"`
	Examples []string   `json:"examples"` // names of the first few attempts
}

// Count is a number of attempts, or of secrets, with a name.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"attempts"`
}

// SplitStats describes a split.
type SplitStats struct {
	Name           string  `json:"name"`
	RequestedShare float64 `json:"asked"` // requested share, see Split.Share
	Share          float64 `json:"share"` // of the accepted attempts
	Attempts       int     `json:"attempts"`
	GroupCount     int     `json:"keys"` // number of instances or repositories, see SplitBy
	Rows           int     `json:"rows"`
}

// DuplicateReport describes duplicates.
type DuplicateReport struct {
	Threshold float64         `json:"threshold"`       // Config.Dedupe
	Exact     int             `json:"exact"`           // number of exact copies
	Near      int             `json:"near"`            // number of similar attempts
	Pairs     []DuplicatePair `json:"pairs,omitempty"` // the first maxPairs
}

// DuplicatePair is an attempt that is similar to an earlier one.
type DuplicatePair struct {
	Kept       string  `json:"kept"`
	Duplicate  string  `json:"like"`
	Similarity float64 `json:"likeness"`
	Exact      bool    `json:"exact,omitempty"`
	Dropped    bool    `json:"dropped"` // Duplicate was dropped
}

// SecretReport lists the locations of secrets. It does not contain the secrets.
type SecretReport struct {
	Policy   SecretPolicy `json:"mode"`
	Attempts int          `json:"attempts"` // with secrets
	// ByKind counts secrets by kind.
	ByKind    map[string]int   `json:"kinds,omitempty"`
	Locations []SecretLocation `json:"found,omitempty"`
	Unlisted  int              `json:"more,omitempty"` // number of locations that are not in Locations
}

// Report returns the statistics of the attempts that were added so far.
func (f *Filter) Report() *Report {
	st := f.stats
	r := st.Report // with further lists
	r.Repos, r.Models, r.Verdicts, r.Classes = st.repos.list(), st.models.list(), st.verdicts.list(), st.classes.list()
	r.Tokens = newHistogram(st.tokens, st.unknownLength, f.cfg.Tokenizer)
	r.TestSets = counts(st.testSets.attempts).list()
	for _, reason := range slices.Sorted(maps.Keys(st.dropped)) {
		r.Dropped = append(r.Dropped, *st.dropped[reason])
	}
	slices.SortStableFunc(r.Dropped, func(a, b Dropped) int { return b.Attempts - a.Attempts })
	if len(f.cfg.Splits) > 0 {
		r.SplitBy = cmp.Or(f.cfg.SplitBy, ByInstance)
		r.Splits = st.splitStats()
	}
	r.Notes = st.notes(&r)
	return &r
}

// splitStats returns the splits in the order of Config.Splits, with their shares.
func (s *stats) splitStats() []SplitStats {
	total := 0
	for _, c := range s.splits {
		total += c.Attempts
	}
	var list []SplitStats
	for _, split := range s.cfg.Splits {
		c := *s.splits[split.Name]
		if total > 0 {
			c.Share = math.Round(float64(c.Attempts)/float64(total)*1e4) / 1e4
		}
		list = append(list, c)
	}
	return list
}

// notes returns sentences about results that a user may not expect.
func (s *stats) notes(r *Report) []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	keys := 0
	for _, s := range r.Splits {
		keys += s.GroupCount
	}
	for _, s := range r.Splits {
		switch {
		case s.Attempts == 0 && r.Kept > 0:
			add("the split %s is empty: %s are assigned by their hash, and there are only %d", s.Name, splitUnit(r.SplitBy), keys)
		case r.Kept > 0 && isFarOff(s):
			add("the split %s has %s of the attempts, not %s: %s are assigned by their hash, and there are only %d",
				s.Name, percent(s.Share), percent(s.RequestedShare), splitUnit(r.SplitBy), keys)
		}
	}
	for _, t := range r.TestSets {
		add("%s of the test set %s: models trained on them cannot be measured by it", plural(t.Count, "attempt"), t.Name)
	}
	if r.Duplicates.Threshold == 0 && r.Duplicates.Exact > 0 && !s.cfg.Rollouts {
		add("%s kept; use --dedupe 1 to drop such attempts",
			pluralOf(r.Duplicates.Exact, "exact copy of an earlier attempt was", "exact copies of earlier attempts were"))
	}
	if n := len(s.skippedNames); n > 0 {
		add("these variables are not searched for, because their values are short or plain words: %s", joinNames(s.skippedNames, 5))
	}
	leftInPlace := 0
	for _, f := range r.Secrets.Locations {
		if f.NotRemoved {
			leftInPlace += f.Count
		}
	}
	if leftInPlace > 0 {
		add("%s in patches were kept, since redaction would change the patch", plural(leftInPlace, "likely secret"))
	}
	return notes
}

// isFarOff reports whether the share of a split differs from the requested share by more
// than 5 % of all attempts, or by more than half of the requested share.
func isFarOff(s SplitStats) bool {
	return math.Abs(s.Share-s.RequestedShare) > min(0.05, s.RequestedShare/2)
}

// splitUnit returns what a split consists of.
func splitUnit(b SplitBy) string {
	if b == ByRepo {
		return "repositories"
	}
	return "instances"
}
