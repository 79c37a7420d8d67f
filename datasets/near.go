package datasets

import (
	"cmp"
	"os"
	"path/filepath"
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

// slip is how many letters a file's name may differ by to be meant.
const slip = 2

// NearFile is the data file that somebody may have meant who wrote the path of
// one that is not there: in the same folder, without its ending or a few
// letters away. It is "" where there is none.
func NearFile(name string) string {
	folder, typed := filepath.Split(name)
	if typed == "" {
		return ""
	}
	dir, err := os.Open(cmp.Or(folder, "."))
	if err != nil {
		return ""
	}
	defer dir.Close()                     //nolint:errcheck // read only
	entries, err := dir.ReadDir(maxFiles) // what there is beyond is no suggestion
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() || e.Name() == typed || !IsData(e.Name()) {
			continue
		}
		if _, err := os.Stat(filepath.Join(folder, e.Name())); err == nil { // a link may lead nowhere
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, near := range Near(typed, names, len(names)) {
		if strings.HasPrefix(near, typed+".") || levenshtein.ComputeDistance(typed, near) <= slip {
			return folder + near
		}
	}
	return ""
}
