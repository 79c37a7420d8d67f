package stats

import "math"

// Difference is the difference of two runs on the same instances, the first
// minus the second.
type Difference struct {
	Instances     int      `json:"instances"`
	Mean          float64  `json:"difference"`
	StandardError *float64 `json:"standard_error,omitempty"` // nil for fewer than two instances
	Interval      Interval `json:"interval"`
	// P is the p-value of the exact test: McNemar's for one attempt each,
	// otherwise the sign-flip test. Nil without instances, or if the table of the
	// sign-flip test would be too large.
	P *float64 `json:"p"`
	// Stratified is the p-value of the exact stratified test, about these very
	// instances; nil without repeated attempts, or if the table of the test would
	// be too large.
	Stratified *float64 `json:"p_stratified,omitempty"`
	// Table counts the instances by which run resolves them; nil without instances
	// or with several attempts.
	Table *Table `json:"table,omitempty"`
	// Nonzero counts the instances whose rates differ.
	Nonzero int `json:"differing"`
}

// Table counts instances, one attempt each, by which run resolves them.
type Table struct {
	Both       int `json:"both"`
	OnlyFirst  int `json:"only_first"`
	OnlySecond int `json:"only_second"`
	Neither    int `json:"neither"`
}

// EstimateDifference compares paired counts.
func EstimateDifference(a, b []Count) Difference {
	d := Difference{Instances: len(a), Interval: Interval{-1, 1}}
	if len(a) == 0 {
		return d
	}
	table, single := Table{}, true
	diffs := Differences(a, b)
	for i := range a {
		single = single && a[i].Attempts == 1 && b[i].Attempts == 1
		if diffs[i] != 0 {
			d.Nonzero++
		}
		switch {
		case a[i].Resolved > 0 && b[i].Resolved > 0:
			table.Both++
		case a[i].Resolved > 0:
			table.OnlyFirst++
		case b[i].Resolved > 0:
			table.OnlySecond++
		default:
			table.Neither++
		}
	}
	mean, se := Mean(diffs)
	d.Mean = mean
	if len(a) > 1 {
		d.StandardError = &se
	}
	if single {
		d.Table = &table
		p := McNemar(table.OnlyFirst, table.OnlySecond)
		d.P = &p
		d.Interval = Newcombe(table.Both, table.OnlyFirst, table.OnlySecond, table.Neither)
		return d
	}
	if p, ok := SignFlip(a, b); ok {
		d.P = &p
	}
	if p, ok := Stratified(a, b); ok && repeated(a) && repeated(b) {
		d.Stratified = &p
	}
	n := float64(len(a))
	half := 1 - math.Pow(0.05, 1/n) // usually no instance differs: the limit of a share that was never seen
	if se > 0 {
		half = tQuantile(len(a)-1) * se
	}
	if len(a) > 1 {
		d.Interval = Interval{max(-1, mean-half), min(1, mean+half)}
	}
	return d
}
