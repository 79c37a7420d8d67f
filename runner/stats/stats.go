// Package stats computes the statistics of mini compare: intervals of rates,
// exact tests of paired differences, pass@k, variance components, power, and
// corrections for several comparisons. All functions are pure, except that
// Percentiles sorts its argument.
//
// An instance that was attempted k times, c times with success, is a Count. The
// attempts of one instance are not independent samples of the dataset, so rates
// of several attempts are averaged by instance and never pooled.
package stats

import "math"

// Quantiles of the normal distribution: two-sided 5%, and 80% power.
const (
	z95 = 1.959963984540054
	z80 = 0.8416212335729143
)

// Count is the result of one instance: Resolved of Attempts.
type Count struct {
	Attempts, Resolved int
}

// Rate returns the share of resolved attempts; 0 without attempts.
func (c Count) Rate() float64 {
	if c.Attempts == 0 {
		return 0
	}
	return float64(c.Resolved) / float64(c.Attempts)
}

// Interval is a 95% confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Wilson returns the Wilson score interval of successes out of n. The number of
// successes may be fractional. For n = 0 it is [0, 1].
func Wilson(successes, n float64) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	p := successes / n
	middle := p + z95*z95/(2*n)
	spread := z95 * math.Sqrt(p*(1-p)/n+z95*z95/(4*n*n))
	scale := 1 + z95*z95/n
	i := Interval{max(0, (middle-spread)/scale), min(1, (middle+spread)/scale)}
	if successes <= 0 {
		i.Low = 0
	}
	if successes >= n {
		i.High = 1
	}
	return i
}

// Mean returns the mean of the values and the standard error of the mean. The
// standard error of fewer than two values is NaN.
func Mean(values []float64) (mean, standardError float64) {
	n := float64(len(values))
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	for _, v := range values {
		mean += v
	}
	mean /= n
	return mean, math.Sqrt(variance(values) / n)
}

// variance returns the sample variance; NaN for fewer than two values.
func variance(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return squares / float64(len(values)-1)
}

// tQuantile returns the 97.5% quantile of Student's t distribution, by bisection.
func tQuantile(degrees int) float64 {
	low, high := 0.0, 13.0 // the quantile of one degree of freedom is 12.7
	for high-low > 1e-12 {
		if middle := (low + high) / 2; tWithin(middle, degrees) < 0.95 {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// tWithin returns the probability that a t-distributed variable is between -t and
// t. For a whole number of degrees of freedom, the distribution is a finite sum
// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
func tWithin(t float64, degrees int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(degrees)))
	sine, cosine := math.Sincos(angle)
	odd := degrees % 2
	term, sum := 1.0, 0.0
	if odd == 1 {
		term = cosine
	}
	for k := odd; k < degrees-1; k += 2 {
		sum += term
		term *= cosine * cosine * float64(k+1) / float64(k+2)
	}
	if odd == 1 {
		return 2 / math.Pi * (angle + sine*sum)
	}
	return sine * sum
}

// Rate is an estimated success rate.
type Rate struct {
	Instances int     `json:"instances"`
	Mean      float64 `json:"rate"`
	// StandardError is clustered by instance (Miller, "Adding Error Bars to
	// Evals", 2024); nil for fewer than two instances.
	StandardError *float64 `json:"standard_error,omitempty"`
	// Interval is nil if it cannot be estimated.
	Interval *Interval `json:"interval,omitempty"`
}

// EstimateRate estimates the mean rate of the instances. With one attempt each,
// or equal rates, the interval is Wilson's; otherwise it is that of the mean of
// the instances' rates.
func EstimateRate(counts []Count) Rate {
	r := Rate{Instances: len(counts)}
	if len(counts) == 0 {
		return r
	}
	rates, single := make([]float64, len(counts)), true
	for i, c := range counts {
		rates[i] = c.Rate()
		single = single && c.Attempts == 1
	}
	n := float64(len(counts))
	mean, se := Mean(rates)
	r.Mean = mean
	if len(counts) > 1 {
		r.StandardError = &se
	}
	switch {
	case single || se == 0:
		i := Wilson(mean*n, n)
		r.Interval = &i
	case len(counts) > 1:
		half := tQuantile(len(counts)-1) * se
		r.Interval = &Interval{max(0, mean-half), min(1, mean+half)}
	}
	return r
}
