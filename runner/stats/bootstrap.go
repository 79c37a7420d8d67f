package stats

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Draws is the number of bootstrap samples.
const Draws = 10_000

// Bootstrap calls f with Draws samples of n indices, drawn with replacement. The
// samples are the same at every call and with every version of Go. f must not
// keep the slice.
func Bootstrap(n int, f func(sample []int)) {
	if n == 0 {
		return
	}
	source := rand.NewPCG(1, 2)
	sample := make([]int, n)
	for range Draws {
		for i := range sample {
			// The high word of the product is uniform in [0, n). math/rand/v2's
			// IntN is not promised to stay the same.
			high, _ := bits.Mul64(source.Uint64(), uint64(n))
			sample[i] = int(high)
		}
		f(sample)
	}
}

// Percentiles returns the range that holds the middle 95% of the values. It
// sorts values, which must not be empty.
func Percentiles(values []float64) Interval {
	slices.Sort(values)
	last := float64(len(values) - 1)
	return Interval{values[int(0.025*last)], values[int(0.975*last+0.5)]}
}
