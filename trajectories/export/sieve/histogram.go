package sieve

import (
	"math"
	"slices"
)

// Histogram is how long attempts are, in tokens.
type Histogram struct {
	// Tokenizer counted; empty where the providers did, each in its way.
	Tokenizer string `json:"tokenizer,omitempty"`
	Attempts  int    `json:"attempts"`          // whose length is known
	Unknown   int    `json:"unknown,omitempty"` // the others
	Sum       int64  `json:"sum"`
	Least     int64  `json:"least"`
	Median    int64  `json:"median"`
	P90       int64  `json:"p90"`
	P99       int64  `json:"p99"`
	Most      int64  `json:"most"`
	Bins      []Bin  `json:"bins,omitempty"`
}

// Bin are the attempts from From on and below To; To is 0 for the last one,
// where a few are far longer than the others.
type Bin struct {
	From  int64 `json:"from"`
	To    int64 `json:"to,omitempty"`
	Count int   `json:"attempts"`
}

// mostBins is how many fit on a screen.
const mostBins = 20

func newHistogram(lengths []int64, unknown int, tokenizer string) Histogram {
	h := Histogram{Tokenizer: tokenizer, Attempts: len(lengths), Unknown: unknown}
	if len(lengths) == 0 {
		return h
	}
	sorted := slices.Sorted(slices.Values(lengths))
	for _, n := range sorted {
		h.Sum += n
	}
	at := func(share float64) int64 { return sorted[int(share*float64(len(sorted)-1)+0.5)] }
	h.Least, h.Median, h.P90, h.P99, h.Most = sorted[0], at(0.5), at(0.9), at(0.99), sorted[len(sorted)-1]
	h.fill(sorted)
	return h
}

// fill makes bins of a round width. The longest hundredth decides nothing: it
// may come to a last bin that has no end.
func (h *Histogram) fill(sorted []int64) {
	reach := h.Most
	if h.Most > 2*h.P99 {
		reach = h.P99
	}
	width := roundWidth(reach/mostBins + 1)
	first := h.Least / width * width
	for from := first; from <= reach; from += width {
		h.Bins = append(h.Bins, Bin{From: from, To: from + width})
	}
	if end := h.Bins[len(h.Bins)-1].To; h.Most >= end {
		h.Bins = append(h.Bins, Bin{From: end})
	}
	for _, n := range sorted {
		i := min(int((n-first)/width), len(h.Bins)-1)
		h.Bins[i].Count++
	}
}

// roundWidth is 1, 2 or 5 and noughts, and at least n.
func roundWidth(n int64) int64 {
	power := int64(math.Pow10(int(math.Log10(float64(n)))))
	for _, m := range []int64{1, 2, 5, 10} {
		if m*power >= n {
			return m * power
		}
	}
	return 10 * power
}
