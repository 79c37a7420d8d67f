package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/minibench/mini/cmd/mini/internal/safe"
	"github.com/minibench/mini/configs"
)

// Filter says which items a list shows. The zero value shows all.
type Filter struct {
	terms []term
	// Text is searched for in the trajectories themselves, which takes its time;
	// empty where nothing is.
	Text string
}

// term is one condition.
type term struct {
	field Field
	op    string
	word  string
	n     float64
	not   bool
}

// ops are the operators, the longer ones first.
var ops = [...]string{">=", "<=", "!=", ":", "=", ">", "<"}

// ParseFilter reads conditions that all must hold, as
//
//	status:limit verdict:unresolved cost>1 -flags:warned text:"no such file"
//
// A word without a field is a part of the id. Errors say what is valid.
func ParseFilter(line string) (Filter, error) {
	var f Filter
	words, err := split(line)
	if err != nil {
		return f, err
	}
	for _, w := range words {
		t, err := parseTerm(w)
		if err != nil {
			return f, err
		}
		switch {
		case t.field != FieldText:
			f.terms = append(f.terms, t)
		case f.Text != "":
			return f, errors.New("text: once only; put what contains spaces in quotes: text:\"no such file\"")
		case t.not:
			return f, errors.New("-text: is not there; only text: is searched for")
		default:
			f.Text = t.word
		}
	}
	return f, nil
}

func parseTerm(w string) (term, error) {
	t := term{field: FieldID, op: ":"}
	w, t.not = strings.CutPrefix(w, "-")
	at, op := -1, ""
	for i := range w {
		if k := slices.IndexFunc(ops[:], func(o string) bool { return strings.HasPrefix(w[i:], o) }); k >= 0 {
			at, op = i, ops[k]
			break
		}
	}
	name := ""
	if at >= 0 {
		name = strings.ToLower(w[:at])
	}
	switch {
	case at < 0:
		t.word = strings.ToLower(w)
		return t, nil
	case !slices.Contains(filterFields(), Field(name)):
		return t, unknownField(name)
	}
	t.field, t.op, t.word = Field(name), op, w[at+len(op):]
	if t.op == "!=" {
		t.op, t.not = "=", !t.not
	}
	switch {
	case t.word == "":
		return t, fmt.Errorf("%s%s what? %s", t.field, op, t.field.example())
	case t.field.numeric():
		var err error
		t.n, err = t.field.parse(t.word)
		return t, err
	case t.op != ":" && t.op != "=":
		return t, fmt.Errorf("%s has no order: say %s:%s", t.field, t.field, t.word)
	case t.field != FieldText:
		t.word = strings.ToLower(t.word)
	}
	return t, nil
}

func unknownField(name string) error {
	var names []string
	for _, f := range filterFields() {
		names = append(names, string(f))
	}
	meant := ""
	if near := configs.Nearest(name, names); near != "" {
		meant = "; did you mean " + near + "?"
	}
	return fmt.Errorf("there is no field %.30q%s (%s)", name, meant, strings.Join(names, " "))
}

func (f Field) example() string {
	return map[Field]string{ //nolint:gosec // G101: a number of tokens is no secret
		FieldID: "as in id:django", FieldRun: "as in run:first", FieldModel: "as in model:gpt", FieldStatus: "as in status:limit or status:running", FieldVerdict: "as in verdict:unresolved or verdict:none",
		FieldCost: "as in cost>0.5", FieldSteps: "as in steps>=20", FieldTokens: "as in tokens>100k", FieldTime: "as in time>5m",
		FieldFlags: "as in flags:autosubmitted or flags:none", FieldText: "as in text:Traceback",
	}[f]
}

// split takes a line apart at spaces that are not in quotes.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case unicode.IsSpace(r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// Shows says whether an item meets all conditions but that on its text.
func (f Filter) Shows(it *Item) bool {
	for _, t := range f.terms {
		if t.holds(it) == t.not {
			return false
		}
	}
	return true
}

func (t term) holds(it *Item) bool {
	if t.field.numeric() {
		n, ok := t.field.number(it)
		return ok && map[string]bool{
			">": n > t.n, "<": n < t.n, ">=": n >= t.n, "<=": n <= t.n, "=": n == t.n, ":": n == t.n,
		}[t.op]
	}
	return slices.ContainsFunc(t.field.words(it), func(w string) bool {
		w = strings.ToLower(w)
		switch {
		case t.op == "=":
			return w == t.word
		case t.field == FieldVerdict: // one verdict is within another's name
			return strings.HasPrefix(w, t.word)
		}
		return strings.Contains(w, t.word)
	})
}

// Complete are lines that go on from one that is being typed: names of fields,
// and the words that items have in them.
func Complete(line string, items []*Item) []string {
	at := strings.LastIndexAny(line, " \t") + 1
	before, last := line[:at], line[at:]
	last, not := strings.CutPrefix(last, "-")
	if not {
		before += "-"
	}
	name, typed, found := strings.Cut(last, ":")
	var all []string
	if !found {
		for _, f := range filterFields() {
			if strings.HasPrefix(string(f), strings.ToLower(last)) && last != "" {
				all = append(all, before+string(f)+map[bool]string{true: ">", false: ":"}[f.numeric()])
			}
		}
		return all
	}
	f := Field(strings.ToLower(name))
	if f == FieldID || f == FieldText {
		return nil
	}
	seen := map[string]bool{}
	for _, it := range items {
		for _, w := range f.words(it) {
			if w = strings.ToLower(w); !seen[w] && w == safe.Line(w) && !strings.ContainsAny(w, " \"'") && strings.HasPrefix(w, strings.ToLower(typed)) {
				seen[w] = true
				all = append(all, before+name+":"+w)
			}
		}
	}
	slices.Sort(all)
	return all
}
