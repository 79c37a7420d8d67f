package runner

import (
	"cmp"
	"strings"
)

func byID(a, b Instance) int { return cmp.Or(compareIDs(a.ID, b.ID), cmp.Compare(a.ID, b.ID)) }

// compareIDs orders ids as people do: x-9 comes before x-10.
func compareIDs(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na == 0 || nb == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		da, db := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
		if c := cmp.Or(cmp.Compare(len(da), len(db)), cmp.Compare(da, db)); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(a, b)
}

// digits is how many of them s begins with.
func digits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}
