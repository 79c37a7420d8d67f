package stats

import "math"

// Detectable returns the smallest difference that a comparison of n instances,
// one attempt each, detects in 4 of 5 cases, if exactly one run resolves the
// share disagreeing of the instances.
func Detectable(n int, disagreeing float64) float64 {
	size := float64(n)
	if disagreeing <= 0 {
		disagreeing = 3 / size // the upper limit of a share that was never seen
	}
	d := 0.0
	for range 200 {
		d = (z95*math.Sqrt(disagreeing) + z80*math.Sqrt(max(0, disagreeing-d*d))) / math.Sqrt(size)
	}
	return min(1, d)
}

// InstancesToDetect returns how many instances, one attempt each, detect a
// difference in 4 of 5 cases, if exactly one run resolves the share disagreeing
// of the instances.
func InstancesToDetect(difference, disagreeing float64) int {
	root := (z95*math.Sqrt(disagreeing) + z80*math.Sqrt(max(0, disagreeing-difference*difference))) / difference
	return ceil(root * root)
}

// Spread is the variance of paired differences of rates: Between is that of the
// instances' true differences, Within the sum of both runs' variances of single
// attempts.
type Spread struct {
	Between, Within float64
}

// EstimateSpread estimates the spread of paired counts. It returns false
// without repeated attempts or with fewer than two instances.
func EstimateSpread(a, b []Count) (Spread, bool) {
	va, okA := EstimateVariance(a)
	vb, okB := EstimateVariance(b)
	if !okA || !okB {
		return Spread{}, false
	}
	noise := 0.0
	for i := range a {
		noise += (meanVariance(a[i]) + meanVariance(b[i])) / float64(len(a))
	}
	return Spread{Between: max(0, variance(Differences(a, b))-noise), Within: va.Within + vb.Within}, true
}

// Instances returns how many instances, with k attempts each, detect a
// difference in 4 of 5 cases.
func (s Spread) Instances(difference float64, k int) int {
	r := (z95 + z80) / difference
	return ceil(r * r * (s.Between + s.Within/float64(k)))
}

// Attempts returns how many attempts at each of n instances detect a difference
// in 4 of 5 cases. It returns false if no number is enough: see Floor.
func (s Spread) Attempts(difference float64, n int) (int, bool) {
	r := difference / (z95 + z80)
	left := r*r*float64(n) - s.Between
	if left <= 0 {
		return 0, false
	}
	return max(1, ceil(s.Within/left)), true
}

// Floor returns the smallest difference that any number of attempts at n
// instances can detect in 4 of 5 cases. Below it, only more instances help.
func (s Spread) Floor(n int) float64 {
	return (z95 + z80) * math.Sqrt(s.Between/float64(n))
}

// ceil rounds up, and ignores rounding errors of the computation.
func ceil(x float64) int { return int(math.Ceil(x - 1e-9)) }
