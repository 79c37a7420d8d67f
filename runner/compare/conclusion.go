package compare

import (
	"fmt"

	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/stats"
)

// Conclusion is what a comparison of two runs shows.
type Conclusion string

// The conclusions.
const (
	More       Conclusion = "more"        // the candidate resolves more
	Fewer      Conclusion = "fewer"       // the candidate resolves fewer
	Unclear    Conclusion = "cannot_tell" // the results do not show a difference
	Borderline Conclusion = "borderline"  // the test and the interval disagree
	NoPairs    Conclusion = "no_pairs"    // no instance can be compared
)

// conclude sets the conclusion and its sentence.
func (p *Pair) conclude() {
	d := p.Difference
	if d.Instances == 0 {
		p.Conclusion, p.Sentence = NoPairs, fmt.Sprintf("%s and %s cannot be compared: no instance has a verdict in both", p.Candidate, p.Base)
		return
	}
	isBelow := d.P != nil && p.shownP() < 0.05
	excludesZero := d.Interval.Low > 0 || d.Interval.High < 0
	switch {
	case isBelow && excludesZero && d.Mean > 0:
		p.Conclusion = More
		p.Sentence = fmt.Sprintf("%s resolves %s more than %s %s, %s", p.Candidate, points(d.Mean), p.Base, interval(d.Interval), p.pText())
	case isBelow && excludesZero:
		p.Conclusion = Fewer
		flipped := stats.Interval{Low: -d.Interval.High, High: -d.Interval.Low}
		p.Sentence = fmt.Sprintf("%s resolves %s fewer than %s %s, %s", p.Candidate, points(-d.Mean), p.Base, interval(flipped), p.pText())
	case isBelow != excludesZero && d.P != nil:
		p.Conclusion = Borderline
		p.Sentence = fmt.Sprintf("borderline: %s against %s: %s", p.Candidate, p.Base, p.numbers())
	default:
		p.Conclusion = Unclear
		p.Sentence = fmt.Sprintf("cannot tell whether %s differs from %s: %s%s", p.Candidate, p.Base, p.numbers(), p.whatWouldShow())
	}
}

// whatWouldShow says which difference a comparison like this would show, or
// that its p-value cannot be below 0.05. It returns "" if neither is known.
func (p *Pair) whatWouldShow() string {
	d := p.Difference
	switch t := d.Table; {
	case t != nil && t.OnlyFirst+t.OnlySecond > 0 && t.OnlyFirst+t.OnlySecond <= 5:
		return fmt.Sprintf("; %d of %d instances differ, too few for a p-value below 0.05", t.OnlyFirst+t.OnlySecond, d.Instances)
	case t != nil && p.Detectable != nil:
		return fmt.Sprintf("; a comparison of %d instances like these detects a difference of %s or more, 4 times in 5",
			d.Instances, points(*p.Detectable))
	case t == nil && d.Nonzero > 0 && d.Nonzero <= 5:
		return fmt.Sprintf("; %d of %d instances differ, too few for a p-value below 0.05", d.Nonzero, d.Instances)
	}
	return ""
}

// numbers returns the difference, its interval and its p-value.
func (p *Pair) numbers() string {
	d := p.Difference
	return fmt.Sprintf("%s %s, %s", points(d.Mean), interval(d.Interval), p.pText())
}

// pText returns the p-value, and whether it was adjusted.
func (p *Pair) pText() string {
	if p.Difference.P == nil {
		return "no p-value: the numbers of attempts differ too much for an exact test"
	}
	text := "p " + pValueText(p.shownP())
	if p.AdjustedP != nil {
		text += " (adjusted)"
	}
	return text
}

// phrase describes a difference under an assumption.
func phrase(d stats.Difference) string {
	p := Pair{Difference: d}
	return "the difference is " + p.numbers()
}

// points formats a difference of rates in percentage points.
func points(d float64) string {
	text := unit.Points(d)
	if text == "1.0" || text == "-1.0" {
		return text + " point"
	}
	return text + " points"
}

// interval formats an interval of a difference in percentage points.
func interval(i stats.Interval) string {
	return "(" + unit.Range(i.Low, i.High) + ")"
}

// pValueText formats a p-value, for example as "= 0.023" or "< 1e-12": with two
// significant digits below 0.1, and two decimals from there.
func pValueText(p float64) string {
	switch {
	case p < 1e-12:
		return "< 1e-12"
	case p < 0.0001:
		return fmt.Sprintf("= %.1e", p)
	case p < 0.1:
		return fmt.Sprintf("= %.2g", p)
	}
	return fmt.Sprintf("= %.2f", p)
}

// Gate says whether a drop is small enough.
type Gate struct {
	MaxDrop float64      `json:"max_drop"` // in points
	Answer  GateAnswer   `json:"answer"`   // the worst of all candidates
	Each    []GateAnswer `json:"each"`     // by candidate
}

// GateAnswer is the answer of a gate.
type GateAnswer string

// The answers.
const (
	Passed  GateAnswer = "passed"      // the whole interval is better than a drop of the maximum
	Failed  GateAnswer = "failed"      // the whole interval is worse than a drop of the maximum
	Unknown GateAnswer = "cannot_tell" // the interval contains the maximum, or no instance can be compared
)

func newGate(pairs []Pair, maxDrop float64) *Gate {
	g := &Gate{MaxDrop: maxDrop, Answer: Passed}
	limit := -maxDrop / 100
	for _, p := range pairs {
		answer := Unknown
		switch i := p.Difference.Interval; {
		case p.Difference.Instances == 0: // nothing is known
		case i.Low > limit:
			answer = Passed
		case i.High < limit:
			answer = Failed
		}
		g.Each = append(g.Each, answer)
		if answer == Failed || answer == Unknown && g.Answer == Passed {
			g.Answer = answer
		}
	}
	return g
}
