package stats

import (
	"math"
	"math/big"
)

// McNemar returns the two-sided p-value of the exact McNemar test: onlyA and
// onlyB count the instances that exactly one of two runs resolves.
func McNemar(onlyA, onlyB int) float64 {
	n, least := onlyA+onlyB, min(onlyA, onlyB)
	tail, binomial := new(big.Int), big.NewInt(1)
	for i := 0; i <= least; i++ {
		tail.Add(tail, binomial)
		binomial.Mul(binomial, big.NewInt(int64(n-i)))
		binomial.Div(binomial, big.NewInt(int64(i+1)))
	}
	share := new(big.Float).SetInt(tail)
	p, _ := share.SetMantExp(share, 1-n).Float64()
	return min(1, p)
}

// Newcombe returns the interval of the difference of two paired proportions
// (Newcombe 1998, method 10). both, onlyA, onlyB and neither count the
// instances that both runs, exactly one of them, or none of them resolves.
func Newcombe(both, onlyA, onlyB, neither int) Interval {
	a, b, c, d := float64(both), float64(onlyA), float64(onlyB), float64(neither)
	n := a + b + c + d
	if n == 0 {
		return Interval{-1, 1}
	}
	p1, p2 := (a+b)/n, (a+c)/n
	first, second := Wilson(a+b, n), Wilson(a+c, n)
	q := a*d - b*c
	if q > n/2 {
		q -= n / 2
	} else if q > 0 {
		q = 0
	}
	phi := 0.0
	if m := (a + b) * (c + d) * (a + c) * (b + d); m > 0 {
		phi = q / math.Sqrt(m)
	}
	half := func(x, y float64) float64 { return math.Sqrt(max(0, x*x-2*phi*x*y+y*y)) }
	return Interval{
		Low:  p1 - p2 - half(p1-first.Low, second.High-p2),
		High: p1 - p2 + half(first.High-p1, p2-second.Low),
	}
}

// maxCells limits the table of an exact test.
const maxCells = 1 << 23

// pairs holds paired counts with the differences of their rates as integers:
// each difference is multiplied by scale, the least common multiple of the
// numbers of attempts.
type pairs struct {
	a, b  []Count
	diffs []int
	scale int
}

func newPairs(a, b []Count) (pairs, bool) {
	p := pairs{a: a, b: b, scale: 1, diffs: make([]int, len(a))}
	for i := range a {
		for _, k := range []int{a[i].Attempts, b[i].Attempts} {
			p.scale = p.scale / gcd(p.scale, k) * k
			if p.scale > maxCells {
				return p, false
			}
		}
	}
	for i := range a {
		p.diffs[i] = a[i].Resolved*(p.scale/a[i].Attempts) - b[i].Resolved*(p.scale/b[i].Attempts)
	}
	return p, true
}

// Differences returns the differences of the rates by instance, a minus b.
func Differences(a, b []Count) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i].Rate() - b[i].Rate()
	}
	return d
}

// SignFlip returns the two-sided p-value of the exact sign-flip test on the
// paired differences: the share of all assignments of signs whose sum is at
// least as far from zero. It answers whether the runs differ on instances like
// these. With one attempt for each instance it equals McNemar. It returns false
// if the table would be too large.
func SignFlip(a, b []Count) (float64, bool) {
	p, ok := newPairs(a, b)
	if !ok {
		return 0, false
	}
	var steps []distribution
	for _, d := range p.diffs {
		if d != 0 {
			steps = append(steps, distribution{{-abs(d), 0.5}, {abs(d), 0.5}})
		}
	}
	return tail(steps, p.diffs)
}

// Stratified returns the two-sided p-value of the exact stratified permutation
// test: within each instance, the resolved attempts of both runs are
// distributed over the attempts at random. It answers whether the runs differ
// on these very instances if they are run again, and assumes independent
// attempts. It returns false if the table would be too large.
func Stratified(a, b []Count) (float64, bool) {
	p, ok := newPairs(a, b)
	if !ok {
		return 0, false
	}
	var steps []distribution
	for i := range a {
		ka, kb, c := a[i].Attempts, b[i].Attempts, a[i].Resolved+b[i].Resolved
		var d distribution
		for x := max(0, c-kb); x <= min(ka, c); x++ {
			share := choose(ka, x) * choose(kb, c-x) / choose(ka+kb, c)
			d = append(d, outcome{x*(p.scale/ka) - (c-x)*(p.scale/kb), share})
		}
		steps = append(steps, d)
	}
	return tail(steps, p.diffs)
}

// distribution lists the values of one term of a sum with their probabilities.
type distribution []outcome

type outcome struct {
	value       int
	probability float64
}

// tail returns the probability that the sum of independent terms is at least as
// far from zero as the sum of the observed values. It returns false if the
// table would be too large.
func tail(terms []distribution, observed []int) (float64, bool) {
	sum, reach := 0, 0
	for _, d := range observed {
		sum += d
	}
	if sum == 0 {
		return 1, true
	}
	step := 0
	for _, t := range terms {
		widest := 0
		for _, o := range t {
			widest = max(widest, abs(o.value))
			step = gcd(step, abs(o.value))
		}
		reach += widest
	}
	step = max(step, 1) // all values are multiples of it
	reach /= step
	if reach > maxCells || reach*len(terms) > 1<<33 {
		return 0, false
	}
	table, next := make([]float64, 2*reach+1), make([]float64, 2*reach+1)
	table[reach] = 1
	low, high := reach, reach // the cells in use
	for _, t := range terms {
		least, most := 0, 0
		for _, o := range t {
			least, most = min(least, o.value/step), max(most, o.value/step)
		}
		clear(next[low+least : high+most+1])
		for _, o := range t {
			shift := o.value / step
			for i := low; i <= high; i++ {
				next[i+shift] += table[i] * o.probability
			}
		}
		table, next = next, table
		low, high = low+least, high+most
	}
	p := 0.0
	for i := low; i <= high; i++ {
		if abs(i-reach) >= abs(sum)/step {
			p += table[i]
		}
	}
	return min(1, p), true
}

// choose returns the binomial coefficient.
func choose(n, k int) float64 {
	if k < 0 || k > n {
		return 0
	}
	c := 1.0
	for i := 1; i <= k; i++ {
		c = c * float64(n-k+i) / float64(i)
	}
	return c
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
