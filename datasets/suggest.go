package datasets

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxQuery limits the length of the ids whose edit distance is computed, in bytes.
const maxQuery = 200

// ClosestIDs returns at most limit ids that are similar to typed, an id that does not
// exist: first those that contain it, then those with a small edit distance. Of an id, one or two
// letters are not similar, except a number at its end.
func ClosestIDs(typed string, ids []string, limit int) []string {
	if typed == "" || len(typed) > maxQuery {
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
		case len(wanted) > 2 && strings.Contains(known, wanted), strings.HasSuffix(known, "-"+wanted):
			found = append(found, candidate{id, 0})
		case len(known) <= maxQuery:
			if d := levenshtein.ComputeDistance(wanted, known); d <= len(wanted)/3 {
				found = append(found, candidate{id, d})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var similar []string
	for _, c := range found[:min(limit, len(found))] {
		similar = append(similar, c.id)
	}
	return similar
}

// maxTypos is the largest edit distance of a suggested file name.
const maxTypos = 2

// ClosestFile returns the data file that the user may have meant: one in the same
// directory with a similar name or an additional extension; "" if there is none.
func ClosestFile(name string) string {
	folder, typed := filepath.Split(name)
	if typed == "" {
		return ""
	}
	dir, err := os.Open(cmp.Or(folder, "."))
	if err != nil {
		return ""
	}
	defer dir.Close()                     //nolint:errcheck // read only
	entries, err := dir.ReadDir(maxFiles) // ignore further files
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() || e.Name() == typed || !IsDataFile(e.Name()) {
			continue
		}
		if _, err := os.Stat(filepath.Join(folder, e.Name())); err == nil { // skip broken links
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, similar := range ClosestIDs(typed, names, len(names)) {
		if strings.HasPrefix(similar, typed+".") || levenshtein.ComputeDistance(typed, similar) <= maxTypos {
			return folder + similar
		}
	}
	return ""
}
