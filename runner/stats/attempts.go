package stats

import "math"

// PassAt returns pass@k of one instance: the probability that at least one of k
// attempts is resolved, 1 - C(n-c, k) / C(n, k) for c of n (Chen et al.,
// "Evaluating Large Language Models Trained on Code", 2021). k is at most the
// number of attempts.
func PassAt(c Count, k int) float64 {
	// A product of quotients does not overflow.
	miss := 1.0
	for i := range k {
		miss *= max(0, float64(c.Attempts-c.Resolved-i)) / float64(c.Attempts-i)
	}
	return 1 - miss
}

// PassAll returns pass^k of one instance: the probability that all of k attempts
// are resolved, C(c, k) / C(n, k). k is at most the number of attempts.
func PassAll(c Count, k int) float64 {
	hit := 1.0
	for i := range k {
		hit *= max(0, float64(c.Resolved-i)) / float64(c.Attempts-i)
	}
	return hit
}

// Variance separates the variance of single attempts into the part within
// instances, from attempt to attempt, and the part between instances.
type Variance struct {
	Within  float64 `json:"within"`
	Between float64 `json:"between"`
	// Intraclass is the intraclass correlation: the share of Between.
	Intraclass float64 `json:"intraclass_correlation"`
}

// EstimateVariance estimates the components. It returns false if an instance
// has fewer than two attempts, or there are fewer than two instances.
func EstimateVariance(counts []Count) (Variance, bool) {
	if len(counts) < 2 || !repeated(counts) {
		return Variance{}, false
	}
	var v Variance
	rates, noise := make([]float64, len(counts)), 0.0
	for i, c := range counts {
		rates[i] = c.Rate()
		v.Within += meanVariance(c) * float64(c.Attempts) / float64(len(counts))
		noise += meanVariance(c) / float64(len(counts))
	}
	v.Between = max(0, variance(rates)-noise)
	if total := v.Within + v.Between; total > 0 {
		v.Intraclass = v.Between / total
	}
	return v, true
}

// RerunNoise returns the difference that the rates of two runs of the same
// agent on the same instances do not exceed in 19 of 20 cases. It returns false
// without repeated attempts.
func RerunNoise(counts []Count) (float64, bool) {
	if len(counts) == 0 || !repeated(counts) {
		return 0, false
	}
	sum := 0.0
	for _, c := range counts {
		sum += meanVariance(c)
	}
	return z95 * math.Sqrt(2*sum) / float64(len(counts)), true
}

// meanVariance estimates the variance of an instance's rate, without bias.
func meanVariance(c Count) float64 {
	return c.Rate() * (1 - c.Rate()) / float64(c.Attempts-1)
}

func repeated(counts []Count) bool {
	for _, c := range counts {
		if c.Attempts < 2 {
			return false
		}
	}
	return true
}

// FullFlips counts the instances that one run resolves in all attempts and the
// other in none. Chance is the number to expect if the runs do not differ: of
// the instances with k resolved among the 2k attempts of both runs, a share of
// 2 / C(2k, k).
func FullFlips(a, b []Count) (found int, chance float64) {
	for i := range a {
		ka, kb, c := a[i].Attempts, b[i].Attempts, a[i].Resolved+b[i].Resolved
		if c == ka && b[i].Resolved == 0 || c == kb && a[i].Resolved == 0 {
			found++
		}
		if c == ka {
			chance += 1 / choose(ka+kb, c)
		}
		if c == kb {
			chance += 1 / choose(ka+kb, c)
		}
	}
	return found, chance
}
