package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/stats"
)

// Pair compares a candidate with the base, on the instances that both have.
// Differences are candidate minus base.
type Pair struct {
	Candidate string `json:"candidate"`
	Base      string `json:"base"`
	// Conclusion is one of the Conclusions, and Sentence says it in words.
	Conclusion Conclusion `json:"conclusion"`
	Sentence   string     `json:"sentence"`
	// Warning says that missing verdicts could change the conclusion; "" if
	// they could not.
	Warning    string           `json:"warning,omitempty"`
	Difference stats.Difference `json:"difference"`
	// AdjustedP is P of the difference, adjusted for several candidates; nil if
	// there is only one, or no P.
	AdjustedP *float64 `json:"p_adjusted,omitempty"`
	// Unpaired lists the instances that cannot be compared.
	Unpaired []Unpaired `json:"unpaired"`
	// Bounds are the differences if missing verdicts do not count, count as
	// unresolved, or count as resolved for one run only; nil if none is missing.
	Bounds []Bound `json:"bounds,omitempty"`
	// FullFlips counts the instances that one run resolves in all attempts and
	// the other in none; FlipsByChance is the number to expect if the runs do
	// not differ.
	FullFlips     int     `json:"full_flips"`
	FlipsByChance float64 `json:"full_flips_by_chance"`
	// Detectable is the smallest difference that such a comparison detects in 4 of
	// 5 cases; nil for repeated attempts.
	Detectable *float64 `json:"detectable,omitempty"`
	Power      *Power   `json:"power,omitempty"`
	// Queue lists the instances whose rates differ: full flips first, then by
	// the size of the difference.
	Queue []Flip `json:"differing_instances"`
	// Reversals is the smallest number of flips in favor of the better run that
	// would have to be wrong for p to reach 0.05; 0 if p is not below 0.05.
	Reversals    int    `json:"reversals,omitempty"`
	Repositories []Repo `json:"repositories,omitempty"`
}

// Unpaired is an instance that cannot be compared.
type Unpaired struct {
	ID     string `json:"instance_id"`
	Reason string `json:"reason"`
}

// Bound is the difference under an assumption about missing verdicts.
type Bound struct {
	Assumption string           `json:"assumption"`
	Difference stats.Difference `json:"difference"`
}

// Power says what would detect a difference in 4 of 5 cases.
type Power struct {
	Difference float64 `json:"difference"`
	// Instances is the number of instances that are needed with as many attempts
	// as now. Attempts is the number of attempts that are needed at each of the
	// compared instances; nil if no number is enough, or the runs have single
	// attempts.
	Instances int  `json:"instances"`
	Attempts  *int `json:"attempts"`
	// Floor is the difference below which only more instances help; nil for single
	// attempts.
	Floor *float64 `json:"floor,omitempty"`
}

// Flip is an instance whose rates differ.
type Flip struct {
	ID         string   `json:"instance_id"`
	Candidate  FlipSide `json:"candidate"`
	Base       FlipSide `json:"base"`
	Difference float64  `json:"difference"`
	Full       bool     `json:"full"`
}

// FlipSide is the result of one run on an instance.
type FlipSide struct {
	Attempts int      `json:"attempts"`
	Resolved int      `json:"resolved"`
	Outcomes []string `json:"outcomes"`          // of the attempts with a verdict, in order
	Cost     float64  `json:"cost"`              // of all tries, in US dollars
	Flagged  bool     `json:"flagged,omitempty"` // a verdict is suspicious
}

// Repo is the difference on the instances of one repository.
type Repo struct {
	Name       string           `json:"repository"`
	Difference stats.Difference `json:"difference"`
	AdjustedP  *float64         `json:"p_adjusted,omitempty"` // for all repositories
}

func newPair(candidate, base Run, o Options) Pair {
	p := Pair{Candidate: candidate.Name, Base: base.Name}
	a, b, ids, unpaired := pairUp(candidate, base, o.Missing)
	p.Unpaired = unpaired
	p.Difference = stats.EstimateDifference(a, b)
	p.FullFlips, p.FlipsByChance = stats.FullFlips(a, b)
	p.Queue = queueOf(candidate, base, ids, a, b)
	p.Reversals = reversals(a, b)
	p.addPower(a, b, o.Detect/100)
	p.addBounds(candidate, base)
	p.addRepositories(ids, a, b)
	return p
}

// pairUp returns the counts of the instances that both runs have, in the same
// order, and the instances that cannot be compared.
func pairUp(candidate, base Run, rule MissingRule) (a, b []stats.Count, ids []string, unpaired []Unpaired) {
	unpaired = []Unpaired{}
	others := map[string]Instance{}
	for _, in := range base.Instances {
		others[in.ID] = in
	}
	for _, in := range candidate.Instances {
		other, ok := others[in.ID]
		delete(others, in.ID)
		first, second := in.countWith(rule), other.countWith(rule)
		reason := ""
		switch {
		case !ok:
			reason = "only in " + candidate.Name
		case in.Spec != "" && other.Spec != "" && in.Spec != other.Spec:
			reason = "the tests differ"
		case first.Attempts == 0 && second.Attempts == 0:
			reason = "no verdict in either"
		case first.Attempts == 0:
			reason = "no verdict in " + candidate.Name
		case second.Attempts == 0:
			reason = "no verdict in " + base.Name
		}
		if reason != "" {
			unpaired = append(unpaired, Unpaired{in.ID, reason})
			continue
		}
		a, b, ids = append(a, first), append(b, second), append(ids, in.ID)
	}
	for id := range others {
		unpaired = append(unpaired, Unpaired{id, "only in " + base.Name})
	}
	slices.SortFunc(unpaired, func(a, b Unpaired) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), datasets.CompareNatural(a.ID, b.ID))
	})
	return a, b, ids, unpaired
}

// p returns the p-value of the difference, 1 if it is unknown.
func (p *Pair) p() float64 { return pValue(p.Difference) }

func pValue(d stats.Difference) float64 {
	if d.P == nil {
		return 1
	}
	return *d.P
}

// shownP returns the p-value that the conclusion uses: the adjusted one if
// there are several candidates.
func (p *Pair) shownP() float64 {
	if p.AdjustedP != nil {
		return *p.AdjustedP
	}
	return p.p()
}

// addPower sets Detectable and Power. detect is the difference for Power, as a
// share; 0 for none.
func (p *Pair) addPower(a, b []stats.Count, detect float64) {
	n := len(a)
	if n == 0 {
		return
	}
	spread, repeated := stats.EstimateSpread(a, b)
	if t := p.Difference.Table; t != nil {
		disagreeing := float64(t.OnlyFirst+t.OnlySecond) / float64(n)
		d := stats.Detectable(n, disagreeing)
		p.Detectable = &d
		if detect > 0 {
			if disagreeing == 0 {
				disagreeing = min(1, 3/float64(n))
			}
			// At least this share has to disagree for such a difference.
			p.Power = &Power{Difference: detect, Instances: stats.InstancesToDetect(detect, max(disagreeing, detect))}
		}
		return
	}
	if !repeated || detect <= 0 {
		return
	}
	attempts := a[0].Attempts
	for i := range a {
		attempts = min(attempts, a[i].Attempts, b[i].Attempts)
	}
	floor := spread.Floor(n)
	p.Power = &Power{Difference: detect, Instances: spread.Instances(detect, attempts), Floor: &floor}
	if k, ok := spread.Attempts(detect, n); ok {
		p.Power.Attempts = &k
	}
}

// addBounds adds the differences under other assumptions about missing
// verdicts, and a warning if they change the sign or the significance.
func (p *Pair) addBounds(candidate, base Run) {
	if !hasMissing(candidate) && !hasMissing(base) {
		return
	}
	for _, assume := range []struct {
		text            string
		candidate, base MissingRule
	}{
		{"missing verdicts do not count", Drop, Drop},
		{"missing verdicts count as unresolved", Fail, Fail},
		{"missing verdicts are resolved for " + candidate.Name + " only", allResolved, Fail},
		{"missing verdicts are resolved for " + base.Name + " only", Fail, allResolved},
	} {
		// a and b have the same instances: Fail and allResolved count the same
		// attempts.
		a, _, _, _ := pairUp(candidate, base, assume.candidate)
		_, b, _, _ := pairUp(candidate, base, assume.base)
		p.Bounds = append(p.Bounds, Bound{assume.text, stats.EstimateDifference(a, b)})
	}
	for _, b := range p.Bounds {
		flipped := b.Difference.Mean*p.Difference.Mean < 0
		changed := (pValue(b.Difference) < 0.05) != (p.p() < 0.05)
		if flipped || changed {
			p.Warning = "the conclusion depends on missing verdicts: if " + b.Assumption + ", " + phrase(b.Difference)
			return
		}
	}
}

func hasMissing(r Run) bool {
	return slices.ContainsFunc(r.Instances, func(in Instance) bool { return in.Missing() > 0 })
}

// addRepositories adds the differences by repository, if there are several.
func (p *Pair) addRepositories(ids []string, a, b []stats.Count) {
	type group struct{ a, b []stats.Count }
	groups := map[string]*group{}
	for i, id := range ids {
		name := cmp.Or(datasets.RepoOf(id), datasets.OtherRepos)
		if groups[name] == nil {
			groups[name] = &group{}
		}
		g := groups[name]
		g.a, g.b = append(g.a, a[i]), append(g.b, b[i])
	}
	if len(groups) < 2 {
		return
	}
	var values []float64
	for _, name := range slices.SortedFunc(maps.Keys(groups), datasets.CompareNatural) {
		r := Repo{Name: name, Difference: stats.EstimateDifference(groups[name].a, groups[name].b)}
		p.Repositories = append(p.Repositories, r)
		values = append(values, pValue(r.Difference))
	}
	for i, adjusted := range stats.Holm(values) {
		if p.Repositories[i].Difference.P != nil {
			p.Repositories[i].AdjustedP = &adjusted
		}
	}
}

// queueOf lists the instances whose rates differ: full flips first, then by the
// size of the difference.
func queueOf(candidate, base Run, ids []string, a, b []stats.Count) []Flip {
	queue := []Flip{}
	first, second := byID(candidate), byID(base)
	for i, id := range ids {
		d := a[i].Rate() - b[i].Rate()
		if d == 0 {
			continue
		}
		queue = append(queue, Flip{
			ID: id, Difference: d, Full: math.Abs(d) == 1,
			Candidate: sideOf(first[id], a[i]), Base: sideOf(second[id], b[i]),
		})
	}
	slices.SortStableFunc(queue, func(a, b Flip) int {
		return cmp.Compare(math.Abs(b.Difference), math.Abs(a.Difference))
	})
	return queue
}

func byID(r Run) map[string]Instance {
	all := map[string]Instance{}
	for _, in := range r.Instances {
		all[in.ID] = in
	}
	return all
}

func sideOf(in Instance, c stats.Count) FlipSide {
	s := FlipSide{Attempts: c.Attempts, Resolved: c.Resolved, Outcomes: []string{}, Cost: in.Bill.Dollars}
	for _, a := range in.Attempts {
		s.Outcomes = append(s.Outcomes, a.Outcome)
		s.Flagged = s.Flagged || a.Flagged
	}
	return s
}

// reversals returns how many of the largest differences in favor of the better
// run have to be zero for p to reach 0.05; 0 if p is not below 0.05.
func reversals(a, b []stats.Count) int {
	d := stats.EstimateDifference(a, b)
	if d.P == nil || *d.P >= 0.05 {
		return 0
	}
	diffs := stats.Differences(a, b)
	order := make([]int, 0, len(diffs))
	for i, v := range diffs {
		if v*d.Mean > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(math.Abs(diffs[j]), math.Abs(diffs[i])) })
	// Each reversed flip moves the difference toward the other run: search.
	changed := slices.Clone(a)
	wrong := func(n int) bool {
		copy(changed, a)
		for _, i := range order[:n] {
			changed[i] = b[i]
		}
		left := stats.EstimateDifference(changed, b)
		return pValue(left) >= 0.05 || left.Mean*d.Mean <= 0
	}
	low, high := 1, len(order)
	for low < high {
		if mid := (low + high) / 2; wrong(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
