package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
)

// Field is a column that can be sorted and filtered by.
type Field string

// The fields.
const (
	FieldID      Field = "id"
	FieldRun     Field = "run"
	FieldModel   Field = "model"
	FieldStatus  Field = "status"
	FieldVerdict Field = "verdict"
	FieldCost    Field = "cost"
	FieldSteps   Field = "steps"
	FieldTokens  Field = "tokens"
	FieldTime    Field = "time"
	FieldFlags   Field = "flags"
	FieldText    Field = "text" // filters only: it is searched for
)

// SortFields are those to sort by, in the order in which a key goes through them.
func SortFields() []Field {
	return []Field{FieldID, FieldStatus, FieldVerdict, FieldCost, FieldSteps, FieldTokens, FieldTime, FieldFlags, FieldRun, FieldModel}
}

func filterFields() []Field { return append(SortFields(), FieldText) }

// words are what stands in a column of words.
func (f Field) words(it *Item) []string {
	switch f {
	case FieldID:
		return []string{it.Name()}
	case FieldRun:
		return []string{cmp.Or(it.Run, "none")}
	case FieldModel:
		return []string{cmp.Or(it.Model, "none")}
	case FieldStatus:
		words := []string{it.Ending()}
		if it.State == Ended {
			words = append(words, string(it.Class))
		}
		return append(words, string(it.State))
	case FieldVerdict:
		return []string{cmp.Or(it.Verdict, "none")}
	case FieldFlags:
		if len(it.Flags) == 0 {
			return []string{"none"}
		}
		return it.Flags
	}
	return nil
}

// number is what stands in a column of numbers; false where it has none.
func (f Field) number(it *Item) (float64, bool) {
	known := it.State != Broken && it.State != Unread
	switch f {
	case FieldCost:
		return it.spent(), known && it.Cost != nil
	case FieldSteps:
		return float64(it.Steps), known
	case FieldTokens:
		return float64(it.Tokens), known
	case FieldTime:
		return it.Took.Seconds(), known
	}
	return 0, false
}

func (f Field) numeric() bool {
	return slices.Contains([]Field{FieldCost, FieldSteps, FieldTokens, FieldTime}, f)
}

// parse reads a number as people write it: $1.50, 12k, 3M, 90s, 5m.
func (f Field) parse(s string) (float64, error) {
	if f == FieldTime {
		if d, err := time.ParseDuration(s); err == nil {
			return d.Seconds(), nil
		}
	}
	text, scale := strings.TrimPrefix(s, "$"), 1.0
	switch {
	case strings.HasSuffix(text, "k"), strings.HasSuffix(text, "K"):
		text, scale = text[:len(text)-1], 1e3
	case strings.HasSuffix(text, "M"):
		text, scale = text[:len(text)-1], 1e6
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != n {
		example := map[Field]string{FieldCost: "cost>0.5", FieldSteps: "steps>=20", FieldTokens: "tokens>100k", FieldTime: "time>5m"}[f]
		return 0, fmt.Errorf("%s: %.30q is no number; as in %s", f, s, example)
	}
	return n * scale, nil
}

// Sorting is the order of a list.
type Sorting struct {
	By   Field
	Desc bool
}

// ParseSorting reads a field's name; a dash before it turns the order round.
func ParseSorting(s string) (Sorting, error) {
	name, desc := strings.CutPrefix(s, "-")
	if by := Field(strings.ToLower(name)); slices.Contains(SortFields(), by) {
		return Sorting{by, desc}, nil
	}
	return Sorting{}, fmt.Errorf("%.40q is nothing to sort by: there is %s, and -FIELD for the other way round", s, join(SortFields()))
}

// sort puts items in order. What has no number comes last, whichever way; those
// that are equal stay in the order of their names.
func (s Sorting) sort(items []*Item) {
	slices.SortStableFunc(items, func(a, b *Item) int {
		if c := s.compare(a, b); c != 0 {
			return c
		}
		return cmp.Or(datasets.Natural(a.ID, b.ID), cmp.Compare(a.Sample, b.Sample), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Path, b.Path), cmp.Compare(max(a.Row, -a.Row), max(b.Row, -b.Row)))
	})
}

func (s Sorting) compare(a, b *Item) int {
	var c int
	if s.By.numeric() {
		x, okx := s.By.number(a)
		y, oky := s.By.number(b)
		if okx != oky {
			if okx {
				return -1
			}
			return 1
		}
		c = cmp.Compare(x, y)
	} else if s.By != FieldID {
		c = cmp.Compare(strings.Join(s.By.words(a), " "), strings.Join(s.By.words(b), " "))
	} else {
		c = cmp.Or(datasets.Natural(a.ID, b.ID), cmp.Compare(a.Sample, b.Sample), cmp.Compare(a.Attempt, b.Attempt))
	}
	if s.Desc {
		return -c
	}
	return c
}

func join[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}
