package web

import (
	"slices"
	"strings"
)

// columns are the columns of a table that links in its head sort. by is the value of the parameter
// sort, such as "id" or "-cost".
type columns struct {
	by  string
	all []column
}

// column is a column of a table.
type column struct {
	Name, Title string
	Number      bool
	Next        string // value of the sort parameter that a click on the head asks for
	Sorted      string // "ascending", "descending" or ""
}

// By returns the value of the parameter.
func (c columns) By() string { return c.by }

// All returns the columns with what a click on their head asks for. The first column sorts a table
// without a parameter.
func (c columns) All() []column {
	by, descending := strings.CutPrefix(c.by, "-")
	all := slices.Clone(c.all)
	for i := range all {
		col := &all[i]
		col.Next = col.Name
		if col.Number {
			col.Next = "-" + col.Name // largest first
		}
		if by == col.Name || c.by == "" && i == 0 {
			col.Sorted, col.Next = "ascending", "-"+col.Name
			if descending {
				col.Sorted, col.Next = "descending", col.Name
			}
		}
	}
	return all
}

// sortRows sorts the rows of a table by one of the orders, and by last where rows are equal.
func sortRows[T any](rows []T, c columns, orders map[string]func(a, b T) int, last func(a, b T) int) {
	by, descending := strings.CutPrefix(c.by, "-")
	order := orders[by]
	slices.SortStableFunc(rows, func(a, b T) int {
		n := 0
		if order != nil {
			n = order(a, b)
		}
		if n == 0 {
			n = last(a, b)
		}
		if descending {
			return -n
		}
		return n
	})
}
