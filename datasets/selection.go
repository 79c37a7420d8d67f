package datasets

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Selection says which rows a run takes, in the order of its fields: named
// rows, then shuffled, then filtered, then sliced. The zero value takes all.
type Selection struct {
	IDs     []string `json:"instances,omitempty"` // exactly these, in the dataset's order
	Shuffle bool     `json:"shuffle,omitempty"`   // sort by id, then mix with Seed: the same order everywhere
	Seed    uint64   `json:"seed,omitempty"`
	Filter  string   `json:"filter,omitempty"` // regular expression; must match from the start of the id
	Slice   string   `json:"slice,omitempty"`  // Python's start:stop:step
}

// Apply returns the selected rows. The error names the field that is wrong.
func (s Selection) Apply(rows []Instance) ([]Instance, error) {
	rows = slices.Clone(rows)
	var err error
	if rows, err = s.named(rows); err != nil {
		return nil, err
	}
	if s.Shuffle {
		slices.SortFunc(rows, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
		r := rand.New(rand.NewPCG(s.Seed, 0)) //nolint:gosec // an order, not a secret
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	if s.Filter != "" {
		re, err := regexp.Compile("^(?:" + s.Filter + ")")
		if err != nil {
			return nil, fmt.Errorf("--filter %q: %w", s.Filter, err)
		}
		rows = slices.DeleteFunc(rows, func(in Instance) bool { return !re.MatchString(in.ID) })
	}
	return slice(rows, s.Slice)
}

func (s Selection) named(rows []Instance) ([]Instance, error) {
	if len(s.IDs) == 0 {
		return rows, nil
	}
	missing := map[string]bool{}
	for _, id := range s.IDs {
		missing[id] = true
	}
	var kept []Instance
	for _, in := range rows {
		if slices.Contains(s.IDs, in.ID) {
			kept = append(kept, in)
			delete(missing, in.ID)
		}
	}
	for _, id := range s.IDs {
		if missing[id] {
			return nil, fmt.Errorf("--instance %q: no row has this id%s", id, near(id, rows))
		}
	}
	return kept, nil
}

// near names an id that contains what was typed, for a user who left out a part.
func near(id string, rows []Instance) string {
	for _, in := range rows {
		if id != "" && strings.Contains(strings.ToLower(in.ID), strings.ToLower(id)) {
			return fmt.Sprintf("; did you mean %s?", in.ID)
		}
	}
	if len(rows) > 0 {
		return fmt.Sprintf("; the first is %s", rows[0].ID)
	}
	return ""
}

// slice has the meaning of Python's rows[start:stop:step].
func slice(rows []Instance, spec string) ([]Instance, error) {
	if spec == "" {
		return rows, nil
	}
	parts := strings.Split(spec, ":")
	bad := fmt.Errorf("--slice %q: write start:stop or start:stop:step, each a whole number or empty, step not 0", spec)
	if len(parts) < 2 || len(parts) > 3 {
		return nil, bad
	}
	var n [3]*int
	for i, p := range parts {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		v, err := strconv.Atoi(p)
		if err != nil {
			return nil, bad
		}
		n[i] = &v
	}
	step := 1
	if n[2] != nil {
		step = *n[2]
	}
	if step == 0 {
		return nil, bad
	}
	step = min(max(step, -len(rows)-1), len(rows)+1) // farther is the same, and cannot overflow
	low, high := 0, len(rows)                        // where start and stop are held, going up
	if step < 0 {
		low, high = -1, len(rows)-1
	}
	at := func(v *int, otherwise int) int {
		if v == nil {
			return otherwise
		}
		i := *v
		if i < 0 {
			i += len(rows)
		}
		return min(max(i, low), high)
	}
	start, stop := at(n[0], low), at(n[1], high)
	if step < 0 {
		start, stop = at(n[0], high), at(n[1], low)
	}
	var kept []Instance
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		kept = append(kept, rows[i])
	}
	return kept, nil
}
