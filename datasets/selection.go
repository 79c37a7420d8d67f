package datasets

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Selection selects the rows of a run: the named rows, shuffled, filtered, then sliced.
// The zero value selects all.
type Selection struct {
	IDs []string `json:"instances,omitempty"` // only these, in the dataset's order
	// Numbered lets a number in IDs that is no id stand for the position of an id in the sorted ids,
	// from 0, as in mini-swe-agent.
	Numbered bool   `json:"-"`
	Shuffle  bool   `json:"shuffle,omitempty"` // sort by id, then shuffle with Seed: reproducible
	Seed     uint64 `json:"seed,omitempty"`
	Filter   string `json:"filter,omitempty"` // regular expression; must match at the start of the id
	Slice    string `json:"slice,omitempty"`  // start:stop:step, as in Python
}

// Apply returns the ids of the selected rows, in order. The error wraps ErrData.
func (s Selection) Apply(ids []string) ([]string, error) {
	ids, err := s.selectIDs(slices.Clone(ids))
	if err != nil {
		return nil, err
	}
	if s.Shuffle {
		slices.Sort(ids)
		r := rand.New(rand.NewPCG(s.Seed, 0)) //nolint:gosec // an order, not a secret
		r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	}
	if s.Filter != "" {
		re, err := regexp.Compile("^(?:" + s.Filter + ")")
		if err != nil {
			reason := err.Error()
			if e, ok := errors.AsType[*syntax.Error](err); ok {
				reason = e.Code.String() // the full text contains the modified expression
			}
			return nil, &dataError{fmt.Sprintf("--filter %q: not a regular expression: %s", s.Filter, reason)}
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return !re.MatchString(id) })
	}
	return slice(ids, s.Slice)
}

// selectIDs returns the ids that s.IDs names.
func (s Selection) selectIDs(ids []string) ([]string, error) {
	if len(s.IDs) == 0 {
		return ids, nil
	}
	named := slices.Clone(s.IDs)
	missing := map[string]bool{}
	for i, id := range named {
		if n, err := strconv.ParseUint(id, 10, 32); s.Numbered && err == nil && int(n) < len(ids) && !slices.Contains(ids, id) {
			named[i] = slices.Sorted(slices.Values(ids))[n]
		}
		if id, ok := MatchID(ids, named[i]); ok {
			named[i] = id
		}
		missing[named[i]] = true
	}
	var selected []string
	for _, id := range ids {
		if slices.Contains(named, id) {
			selected = append(selected, id)
			delete(missing, id)
		}
	}
	for _, id := range named {
		if missing[id] {
			return nil, &dataError{fmt.Sprintf("--instance %q: no row has this id%s", id, suggestID(id, ids))}
		}
	}
	return selected, nil
}

// MatchID returns the id that a user means: the id itself, or the only one of ids that contains the text without
// cutting a number.
func MatchID(ids []string, typed string) (id string, ok bool) {
	if slices.Contains(ids, typed) {
		return typed, true
	}
	matches := 0
	for _, other := range ids {
		if hasPart(other, typed) {
			id = other
			matches++
		}
	}
	return id, matches == 1
}

// hasPart reports whether part is a part of an id that does not cut a number.
func hasPart(id, part string) bool {
	before, after, ok := strings.Cut(id, part)
	isDigit := func(s string, i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	cutsNumber := isDigit(part, 0) && isDigit(before, len(before)-1) || isDigit(part, len(part)-1) && isDigit(after, 0)
	return ok && part != "" && !cutsNumber
}

// suggestID returns a hint for an unknown id: a similar id, or else the first id.
func suggestID(typed string, ids []string) string {
	if closest := ClosestIDs(typed, ids, 1); len(closest) > 0 {
		return fmt.Sprintf("; did you mean %s?", closest[0])
	}
	if len(ids) > 0 {
		return fmt.Sprintf("; the first is %s", ids[0])
	}
	return ""
}

// slice implements Python's rows[start:stop:step].
func slice(rows []string, spec string) ([]string, error) {
	if spec == "" {
		return rows, nil
	}
	parts := strings.Split(spec, ":")
	errSyntax := &dataError{fmt.Sprintf("--slice %q: write start:stop or start:stop:step, each a whole number or empty, step not 0", spec)}
	if len(parts) < 2 || len(parts) > 3 {
		return nil, errSyntax
	}
	var n [3]*int
	for i, p := range parts {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		v, err := strconv.Atoi(p)
		if err != nil {
			return nil, errSyntax
		}
		n[i] = &v
	}
	step := 1
	if n[2] != nil {
		step = *n[2]
	}
	if step == 0 {
		return nil, errSyntax
	}
	step = min(max(step, -len(rows)-1), len(rows)+1) // a larger step has the same result, but may overflow
	low, high := 0, len(rows)                        // limits of start and stop
	if step < 0 {
		low, high = -1, len(rows)-1
	}
	bound := func(v *int, defaultValue int) int {
		if v == nil {
			return defaultValue
		}
		i := *v
		if i < 0 {
			i += len(rows)
		}
		return min(max(i, low), high)
	}
	start, stop := bound(n[0], low), bound(n[1], high)
	if step < 0 {
		start, stop = bound(n[0], high), bound(n[1], low)
	}
	var selected []string
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		selected = append(selected, rows[i])
	}
	return selected, nil
}
