package web

import (
	"fmt"

	"github.com/minibench/mini/runner/compare"
)

// resultTable is the part of a file that programs read: the results of all attempts, and the
// statistics that the file shows of them.
type resultTable struct {
	Format     string              `json:"format"`
	Base       int                 `json:"base"`
	Missing    compare.MissingRule `json:"missing"`
	Runs       []tableRun          `json:"runs"`
	Statistics tableStatistics     `json:"statistics"`
}

type tableRun struct {
	Run        compare.Run `json:"run"`
	Instances  int         `json:"instances"`
	WithResult int         `json:"with_result"`
}

type tableStatistics struct {
	Runs       []compare.Summary `json:"runs"`
	Comparison *compare.Result   `json:"comparison,omitempty"`
	// Sentences are the lines about resolved instances, as the pages show them.
	Sentences []string `json:"sentences"`
}

const (
	tableID     = "results"
	tableFormat = "mini-html-1"
)

func (v *Viewer) newResultTable(o FileOptions) (*resultTable, error) {
	t := &resultTable{Format: tableFormat, Base: o.Base, Missing: o.Missing}
	for _, r := range v.all() {
		s, err := r.load()
		if err != nil {
			return nil, err
		}
		t.Runs = append(t.Runs, tableRun{Run: s.Compared, Instances: s.Summary.Instances, WithResult: s.Summary.WithResult})
	}
	var err error
	t.Statistics, err = t.compute()
	return t, err
}

// compute computes the statistics from the results.
func (t *resultTable) compute() (tableStatistics, error) {
	var s tableStatistics
	var runs []compare.Run
	for _, r := range t.Runs {
		runs = append(runs, r.Run)
		summary := compare.Summarize(r.Run, compare.Drop)
		s.Runs = append(s.Runs, summary)
		s.Sentences = append(s.Sentences, rateSentence(summary, r.Instances, r.WithResult)+".")
	}
	if len(runs) < 2 {
		return s, nil
	}
	if t.Base < 0 || t.Base >= len(runs) {
		return s, fmt.Errorf("the base is run %d of %d", t.Base, len(runs))
	}
	var err error
	if s.Comparison, err = compare.New(runs, compare.Options{Base: t.Base, Missing: t.Missing}); err != nil {
		return s, err
	}
	for _, p := range s.Comparison.Pairs {
		s.Sentences = append(s.Sentences, p.Sentence+".")
	}
	return s, nil
}
