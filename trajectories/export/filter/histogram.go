package filter

import (
	"math"
	"slices"
)

// Histogram describes the distribution of the lengths of attempts, in tokens.
type Histogram struct {
	// Tokenizer is Config.Tokenizer; empty for the counts of providers.
	Tokenizer string `json:"tokenizer,omitempty"`
	Attempts  int    `json:"attempts"`          // with known length
	Unknown   int    `json:"unknown,omitempty"` // with unknown length
	Sum       int64  `json:"sum"`
	Min       int64  `json:"least"`
	Median    int64  `json:"median"`
	P90       int64  `json:"p90"`
	P99       int64  `json:"p99"`
	Max       int64  `json:"most"`
	Bins      []Bin  `json:"bins,omitempty"`
}

// Bin counts the attempts with From <= length < To. A last bin for outliers has To 0 and
// no upper limit.
type Bin struct {
	From  int64 `json:"from"`
	To    int64 `json:"to,omitempty"`
	Count int   `json:"attempts"`
}

// maxBins bounds the bins with an upper limit, so that all fit on a screen.
const maxBins = 20

func newHistogram(lengths []int64, unknown int, tokenizer string) Histogram {
	h := Histogram{Tokenizer: tokenizer, Attempts: len(lengths), Unknown: unknown}
	if len(lengths) == 0 {
		return h
	}
	sorted := slices.Sorted(slices.Values(lengths))
	for _, n := range sorted {
		h.Sum += n
	}
	atShare := func(share float64) int64 { return sorted[int(share*float64(len(sorted)-1)+0.5)] }
	h.Min, h.Median, h.P90, h.P99, h.Max = sorted[0], atShare(0.5), atShare(0.9), atShare(0.99), sorted[len(sorted)-1]
	h.addBins(sorted)
	return h
}

// addBins sets h.Bins. The width of bins is a round number. If the maximum is more than
// twice the 99th percentile, attempts beyond the bin of the percentile are in a last bin
// without an upper limit.
func (h *Histogram) addBins(sorted []int64) {
	longest := h.Max
	if h.Max > 2*h.P99 {
		longest = h.P99
	}
	width := roundWidth(longest/maxBins + 1)
	first := h.Min / width * width
	for from := first; from <= longest; from += width {
		h.Bins = append(h.Bins, Bin{From: from, To: from + width})
	}
	if end := h.Bins[len(h.Bins)-1].To; h.Max >= end {
		h.Bins = append(h.Bins, Bin{From: end})
	}
	for _, n := range sorted {
		i := min(int((n-first)/width), len(h.Bins)-1)
		h.Bins[i].Count++
	}
}

// roundWidth returns the smallest number that is at least n and 1, 2 or 5 times a power
// of ten.
func roundWidth(n int64) int64 {
	power := int64(math.Pow10(int(math.Log10(float64(n)))))
	for _, m := range []int64{1, 2, 5, 10} {
		if m*power >= n {
			return m * power
		}
	}
	return 10 * power
}
