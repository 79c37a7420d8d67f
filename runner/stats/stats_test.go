package stats_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/runner/stats"
)

// near fails unless the values agree to 1e-6.
func near(t *testing.T, what string, got float64, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-6 {
		t.Errorf("%s: %.9f, want %.9f", what, got, want)
	}
}

// of returns instances with k attempts each, of which c are resolved.
func of(k int, c ...int) []stats.Count {
	all := make([]stats.Count, len(c))
	for i := range c {
		all[i] = stats.Count{Attempts: k, Resolved: c[i]}
	}
	return all
}

func repeat(c, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = c
	}
	return all
}

// Three attempts at ten instances by two runs.
var (
	runA = of(3, 3, 3, 3, 2, 2, 1, 1, 0, 0, 0)
	runB = of(3, 3, 3, 2, 2, 0, 1, 0, 0, 0, 0)
)

func TestWilson(t *testing.T) {
	for _, c := range []struct{ successes, n, low, high float64 }{
		{0, 10, 0, .277533},
		{8, 10, .490162, .943318},
		{1, 1, .206549, 1},
		{396, 500, .754264, .825284},
		{500, 500, .992376, 1},
		{0, 0, 0, 1},
		{10, 10, .722467, 1},
		{1, 2, .094531, .905469},
		{50, 103, .391191, .580730},
		{250, 500, .456341, .543659},
	} {
		i := stats.Wilson(c.successes, c.n)
		near(t, fmt.Sprint("low of ", c), i.Low, c.low)
		near(t, fmt.Sprint("high of ", c), i.High, c.high)
	}
}

// The quantiles are those of printed tables, seen in the interval of a mean.
func TestStudentsT(t *testing.T) {
	for degrees, want := range map[int]float64{1: 12.7062047, 2: 4.3026527, 3: 3.1824463, 9: 2.2621572, 30: 2.0422725, 499: 1.9647294} {
		counts := make([]stats.Count, degrees+1) // their rates vary too little to reach 0 or 1
		for i := range counts {
			counts[i] = stats.Count{Attempts: 1000, Resolved: 500 + i%2}
		}
		r := stats.EstimateRate(counts)
		near(t, fmt.Sprint(degrees, " degrees of freedom"), (r.Interval.High-r.Mean) / *r.StandardError, want)
	}
}

func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		onlyA, onlyB int
		p            float64
	}{
		{0, 0, 1},
		{5, 0, .0625},
		{6, 0, .03125},
		{9, 1, .021484375},
		{12, 4, 2517.0 / 32768},
		{25, 10, .0166738478},
		{18, 18, 1},
		{33, 31, .9006532463},
		{37, 31, .5446122234},
		{600, 500, .0028195450},
		{1100, 0, 0},
	} {
		for _, p := range []float64{stats.McNemar(c.onlyA, c.onlyB), stats.McNemar(c.onlyB, c.onlyA)} {
			if math.Abs(p-c.p) > 1e-9 {
				t.Errorf("%d and %d: %.10f, want %.10f", c.onlyA, c.onlyB, p, c.p)
			}
		}
	}
}

func TestNewcombe(t *testing.T) {
	for _, c := range []struct {
		both, onlyA, onlyB, neither int
		difference, low, high, p    float64
	}{
		{350, 45, 31, 74, .028, -.006383, .062490, .135385},
		{240, 30, 14, 216, .032, .005880, .057977, .022629},
		{20, 12, 2, 16, .2, .056156, .329207, .012939},
		{10, 0, 0, 0, 0, -.277533, .277533, 1},
		{5, 0, 5, 0, -.5, -.763407, -.117367, .0625},
	} {
		a, b := single(c.both, c.onlyA, c.onlyB, c.neither)
		d := stats.EstimateDifference(a, b)
		near(t, fmt.Sprint("difference of ", c), d.Mean, c.difference)
		near(t, fmt.Sprint("low of ", c), d.Interval.Low, c.low)
		near(t, fmt.Sprint("high of ", c), d.Interval.High, c.high)
		near(t, fmt.Sprint("p of ", c), *d.P, c.p)
	}
}

// single returns paired counts of one attempt each.
func single(both, onlyA, onlyB, neither int) (a, b []stats.Count) {
	for _, g := range []struct{ n, a, b int }{{both, 1, 1}, {onlyA, 1, 0}, {onlyB, 0, 1}, {neither, 0, 0}} {
		a = append(a, of(1, repeat(g.a, g.n)...)...)
		b = append(b, of(1, repeat(g.b, g.n)...)...)
	}
	return a, b
}

func TestSeveralAttempts(t *testing.T) {
	a, b := stats.EstimateRate(runA), stats.EstimateRate(runB)
	near(t, "mean of A", a.Mean, .5)
	near(t, "standard error of A", *a.StandardError, .133795)
	near(t, "low of A", a.Interval.Low, .197334)
	near(t, "high of A", a.Interval.High, .802666)
	near(t, "mean of B", b.Mean, .366667)
	near(t, "standard error of B", *b.StandardError, .135628)

	va, _ := stats.EstimateVariance(runA)
	vb, _ := stats.EstimateVariance(runB)
	near(t, "within A", va.Within, 2.0/15)
	near(t, "between A", va.Between, 109.0/810)
	near(t, "correlation of A", va.Intraclass, .502304)
	near(t, "within B", vb.Within, .1)
	near(t, "between B", vb.Between, 61.0/405)
	near(t, "correlation of B", vb.Intraclass, .600985)
	if _, ok := stats.EstimateVariance(of(1, 1, 0, 1)); ok {
		t.Error("a variance within instances is known from one attempt")
	}

	mean := func(counts []stats.Count, f func(stats.Count, int) float64, k int) (float64, float64) {
		var all []float64
		for _, c := range counts {
			all = append(all, f(c, k))
		}
		return stats.Mean(all)
	}
	for _, c := range []struct {
		what   string
		counts []stats.Count
		f      func(stats.Count, int) float64
		k      int
		want   float64
	}{
		{"pass@2 of A", runA, stats.PassAt, 2, .633333},
		{"pass@3 of A", runA, stats.PassAt, 3, .7},
		{"pass^2 of A", runA, stats.PassAll, 2, .366667},
		{"pass^3 of A", runA, stats.PassAll, 3, .3},
		{"pass@2 of B", runB, stats.PassAt, 2, .466667},
		{"pass@3 of B", runB, stats.PassAt, 3, .5},
		{"pass^2 of B", runB, stats.PassAll, 2, .266667},
		{"pass^3 of B", runB, stats.PassAll, 3, .2},
		{"pass@1 of 2 in 5", of(5, 2), stats.PassAt, 1, .4},
		{"pass@2 of 2 in 5", of(5, 2), stats.PassAt, 2, .7},
		{"pass@3 of 2 in 5", of(5, 2), stats.PassAt, 3, .9},
		{"pass@4 of 2 in 5", of(5, 2), stats.PassAt, 4, 1},
		{"pass@5 of 2 in 5", of(5, 2), stats.PassAt, 5, 1},
		{"pass^1 of 2 in 5", of(5, 2), stats.PassAll, 1, .4},
		{"pass^2 of 2 in 5", of(5, 2), stats.PassAll, 2, .1},
		{"pass^3 of 2 in 5", of(5, 2), stats.PassAll, 3, 0},
		{"pass@2 of 8 in 10", of(10, 8), stats.PassAt, 2, .977778},
		{"pass^3 of 8 in 10", of(10, 8), stats.PassAll, 3, .466667},
	} {
		got, _ := mean(c.counts, c.f, c.k)
		near(t, c.what, got, c.want)
	}
	_, se := mean(runA, stats.PassAt, 3)
	near(t, "standard error of pass@3 of A", se, .152753)
	_, se = mean(runB, stats.PassAll, 2)
	near(t, "standard error of pass^2 of B", se, .129577)
}

// All ways to draw k of n attempts are counted, and those without one of the c
// resolved.
func TestPassAt(t *testing.T) {
	for n := 1; n <= 8; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= n; k++ {
				drawn, hit := 0, 0
				for set := range uint(1) << n {
					if bits.OnesCount(set) != k {
						continue
					}
					drawn++
					if set&(1<<c-1) != 0 {
						hit++
					}
				}
				got := stats.PassAt(stats.Count{Attempts: n, Resolved: c}, k)
				near(t, fmt.Sprintf("%d of %d resolved, pass@%d", c, n, k), got, float64(hit)/float64(drawn))
			}
		}
	}
}

func TestDifferenceOfSeveralAttempts(t *testing.T) {
	d := stats.EstimateDifference(runA, runB)
	near(t, "mean", d.Mean, .133333)
	near(t, "standard error", *d.StandardError, .073703)
	near(t, "low", d.Interval.Low, -.033394)
	near(t, "high", d.Interval.High, .300061)
	near(t, "sign flips", *d.P, .25)
	near(t, "stratified", *d.Stratified, 61.0/250)

	// Thirds 3 2 2 1 1 1 1 1 -1 -1 0 0, and sixths 3 4 -1 0 1.
	d = stats.EstimateDifference(of(3, 3, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0, 0), of(3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0))
	near(t, "mean in thirds", d.Mean, 5.0/18)
	near(t, "p in thirds", *d.P, 31.0/512)
	p, _ := stats.SignFlip(of(3, 3, 2, 1, 0, 2), of(2, 1, 0, 1, 0, 1))
	near(t, "p in sixths", p, 3.0/8)

	for n, half := range map[int]float64{500: .005974, 10: .258866} {
		d := stats.EstimateDifference(of(3, repeat(2, n)...), of(3, repeat(2, n)...))
		near(t, "half width where no instance differs", d.Interval.High, half)
		near(t, "p where no instance differs", *d.P, 1)
	}
}

// The tests answer two questions: about instances like these, and about these.
func TestTwoQuestions(t *testing.T) {
	a := of(3, append(repeat(3, 8), repeat(0, 12)...)...)
	b := of(3, 0, 0, 0, 0, 3, 3, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3)
	d := stats.EstimateDifference(a, b)
	near(t, "mean", d.Mean, .133333)
	near(t, "sign flips", *d.P, 43.0/128)
	near(t, "stratified", *d.Stratified, .046874)
	s, _ := stats.EstimateSpread(a, b)
	near(t, "spread between", s.Between, 509.0/1710)
	near(t, "floor", s.Floor(20), .341782)
}

func TestPower(t *testing.T) {
	noise, _ := stats.RerunNoise(runA)
	near(t, "rerun noise", noise, .184787)
	va, _ := stats.EstimateVariance(runA)
	near(t, "single attempts that disagree", 2*va.Within, 4.0/15)
	near(t, "500 at .14", stats.Detectable(500, .14), .046769)
	near(t, "300 at .2", stats.Detectable(300, .2), .072053)
	near(t, "50 at .2", stats.Detectable(50, .2), .173042)
	ab, _ := stats.EstimateSpread(runA, runB)
	attempts := func(d float64) int { k, _ := ab.Attempts(d, 10); return k }
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"instances for .02 at .14", stats.InstancesToDetect(.02, .14), 2745},
		{"instances for .03 at .10", stats.InstancesToDetect(.03, .10), 870},
		{"instances without variance within", stats.Spread{Between: 1.0 / 9}.Instances(.03, 1), 969},
		{"instances with it, one attempt", stats.Spread{Between: 1.0 / 9, Within: 1.0 / 3}.Instances(.03, 1), 3876},
		{"instances with it, ten attempts", stats.Spread{Between: 1.0 / 9, Within: 1.0 / 3}.Instances(.03, 10), 1260},
		{"attempts for .133333", attempts(.133333), 11},
		{"attempts for .10", attempts(.10), 19},
		{"attempts for .05", attempts(.05), 74},
	} {
		assert.Equal(t, c.want, c.got, "%s", c.what)
	}
	if _, ok := (stats.Spread{Between: 1}).Attempts(.01, 10); ok {
		t.Error("attempts detect a difference below the floor")
	}
}

func TestAdjust(t *testing.T) {
	for _, c := range []struct {
		what   string
		adjust func([]float64) []float64
		p      []float64
		want   []float64
	}{
		{"Holm", stats.Holm, []float64{.010, .040, .030, .020}, []float64{.04, .06, .06, .06}},
		{"Holm", stats.Holm, []float64{.001, .2, .04, .012}, []float64{.004, .2, .08, .036}},
		{"Holm", stats.Holm, []float64{.6, .7}, []float64{1, 1}},
	} {
		for i, p := range c.adjust(c.p) {
			near(t, fmt.Sprint(c.what, " of ", c.p), p, c.want[i])
		}
	}
}

func TestBootstrap(t *testing.T) {
	diffs := stats.Differences(runA, runB)
	var means []float64
	stats.Bootstrap(len(diffs), func(sample []int) {
		sum := 0.0
		for _, i := range sample {
			sum += diffs[i]
		}
		means = append(means, sum/float64(len(sample)))
	})
	mean, se := stats.Mean(means)
	deviation := se * math.Sqrt(float64(len(means)))
	near(t, "standard error", deviation, .069667) // exactly .069921 with all samples
	if i := stats.Percentiles(means); i.Low >= mean || i.High <= mean || len(means) != stats.Draws {
		t.Errorf("%d draws, mean %f, %v", len(means), mean, i)
	}
}

func TestFullFlips(t *testing.T) {
	found, chance := stats.FullFlips(of(3, 3, 0, 2, 3), of(3, 0, 3, 1, 3))
	assert.Equal(t, 2, found, "full flips")
	near(t, "chance", chance, 3*2.0/20)
	found, chance = stats.FullFlips(of(1, 1, 1, 0), of(1, 0, 1, 1))
	assert.Equal(t, 2, found, "flips of single attempts")
	near(t, "chance of single attempts", chance, 2)
}

// Properties that hold for any counts.
func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		n := 1 + r.IntN(12)
		a, b := make([]stats.Count, n), make([]stats.Count, n)
		one := r.IntN(2) == 0
		for i := range n {
			a[i].Attempts, b[i].Attempts = 1, 1
			if !one {
				a[i].Attempts, b[i].Attempts = 2+r.IntN(4), 2+r.IntN(4)
			}
			a[i].Resolved, b[i].Resolved = r.IntN(a[i].Attempts+1), r.IntN(b[i].Attempts+1)
		}
		forth, back := stats.EstimateDifference(a, b), stats.EstimateDifference(b, a)
		switch {
		case math.Abs(forth.Mean+back.Mean) > 1e-12 || math.Abs(*forth.P-*back.P) > 1e-12:
			t.Fatalf("not symmetric: %v, %v", a, b)
		case math.Abs(forth.Interval.Low+back.Interval.High) > 1e-9:
			t.Fatalf("intervals not symmetric: %v, %v", forth.Interval, back.Interval)
		case *forth.P < 0 || *forth.P > 1 || forth.Mean < forth.Interval.Low-1e-9 || forth.Mean > forth.Interval.High+1e-9:
			t.Fatalf("%v, %v: %+v", a, b, forth)
		}
		if one {
			if p, _ := stats.SignFlip(a, b); math.Abs(p-*forth.P) > 1e-12 {
				t.Fatalf("the sign-flip test says %f, McNemar %f", p, *forth.P)
			}
			continue
		}
		for i := range n {
			for k := 1; k <= a[i].Attempts; k++ {
				if all, once, any := stats.PassAll(a[i], k), a[i].Rate(), stats.PassAt(a[i], k); all > once+1e-12 || once > any+1e-12 {
					t.Fatalf("%v at %d: %f, %f, %f", a[i], k, all, once, any)
				}
			}
			if k := a[i]; k.Attempts >= 3 {
				want := 3*stats.PassAt(k, 1) - 3*stats.PassAt(k, 2) + stats.PassAt(k, 3)
				near(t, "pass^3 from pass@k", stats.PassAll(k, 3), want)
			}
		}
		p := []float64{*forth.P, r.Float64(), r.Float64()}
		for i, q := range stats.Holm(p) {
			if q < p[i] || q > 1 {
				t.Fatalf("Holm of %v is %f at %d", p, q, i)
			}
		}
	}
}

// Runs that do not differ are called different in at most 6% of the draws.
func TestNoDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, k := range []int{1, 3} {
		found := 0
		for range 2000 {
			a, b := make([]stats.Count, 40), make([]stats.Count, 40)
			for i := range a {
				rate := r.Float64()
				a[i].Attempts, b[i].Attempts = k, k
				for range k {
					if r.Float64() < rate {
						a[i].Resolved++
					}
					if r.Float64() < rate {
						b[i].Resolved++
					}
				}
			}
			if p, _ := stats.SignFlip(a, b); p < 0.05 {
				found++
			}
		}
		if found > 120 {
			t.Errorf("%d attempts: p is below 0.05 in %d of 2000 draws", k, found)
		}
	}
}

// Attempts of very different numbers need no table of any size.
func TestLargeTables(t *testing.T) {
	var a, b []stats.Count
	for k := 1; k < 60; k++ {
		a = append(a, stats.Count{Attempts: k, Resolved: k / 2})
		b = append(b, stats.Count{Attempts: k + 1, Resolved: k / 3})
	}
	d := stats.EstimateDifference(a, b)
	if d.P != nil || d.Stratified != nil || d.Interval.High <= d.Interval.Low {
		t.Errorf("%+v", d)
	}
}
