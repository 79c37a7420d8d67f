package grade

import "math"

// WilsonInterval returns the 95% Wilson score interval of a rate, as two shares
// from 0 to 1. It is suitable for few trials and for rates near 0 or 1. Without
// trials it returns 0 and 1.
func WilsonInterval(successes, trials int) (low, high float64) {
	if trials <= 0 {
		return 0, 1
	}
	const z = 1.959963984540054 // two-sided 95% quantile of the normal distribution
	n := float64(trials)
	p := float64(successes) / n
	middle := p + z*z/(2*n)
	spread := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	low, high = max(0, (middle-spread)/scale), min(1, (middle+spread)/scale)
	if successes == 0 {
		low = 0 // avoid a rounding error
	}
	if successes == trials {
		high = 1
	}
	return low, high
}
