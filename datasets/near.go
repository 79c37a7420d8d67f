package datasets

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxTyped bounds what a slip of the fingers can be, in bytes.
const maxTyped = 200

// Near are the ids that somebody may have meant who typed something else: those
// that contain it, for who left out a part, then those a few letters away, the
// nearest first, at most so many.
func Near(typed string, ids []string, most int) []string {
	if typed == "" || len(typed) > maxTyped {
		return nil
	}
	type candidate struct {
		id       string
		distance int
	}
	var found []candidate
	wanted := strings.ToLower(typed)
	for _, id := range ids {
		known := strings.ToLower(id)
		switch {
		case strings.Contains(known, wanted):
			found = append(found, candidate{id, 0})
		case len(known) <= maxTyped:
			if d := levenshtein.ComputeDistance(wanted, known); d <= len(wanted)/3 {
				found = append(found, candidate{id, d})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var near []string
	for _, c := range found[:min(most, len(found))] {
		near = append(near, c.id)
	}
	return near
}
