package grade

import "math"

// Interval is the 95% Wilson interval of a rate, as two shares from 0 to 1. It
// is for few trials too, and for rates near either end. Without trials it is
// all that a rate can be.
func Interval(successes, trials int) (low, high float64) {
	if trials <= 0 {
		return 0, 1
	}
	const z = 1.959963984540054 // of the normal distribution, two-sided
	n := float64(trials)
	p := float64(successes) / n
	middle := p + z*z/(2*n)
	spread := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	low, high = max(0, (middle-spread)/scale), min(1, (middle+spread)/scale)
	if successes == 0 {
		low = 0 // rounding leaves a trace
	}
	if successes == trials {
		high = 1
	}
	return low, high
}
