package stats

import "slices"

// Holm adjusts p-values for several comparisons by Holm's method, in the order
// given.
func Holm(p []float64) []float64 {
	order, adjusted := ascending(p), make([]float64, len(p))
	highest := 0.0
	for rank, i := range order {
		highest = max(highest, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = highest
	}
	return adjusted
}

// BenjaminiHochberg adjusts p-values to control the false discovery rate, in
// the order given.
func BenjaminiHochberg(p []float64) []float64 {
	order, adjusted := ascending(p), make([]float64, len(p))
	lowest := 1.0
	for rank := len(order) - 1; rank >= 0; rank-- {
		i := order[rank]
		lowest = min(lowest, p[i]*float64(len(p))/float64(rank+1))
		adjusted[i] = lowest
	}
	return adjusted
}

// ascending returns the indices of the values in ascending order.
func ascending(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case values[i] < values[j]:
			return -1
		case values[i] > values[j]:
			return 1
		}
		return 0
	})
	return order
}
