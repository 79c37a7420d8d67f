package inspect

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories/filter"
	"github.com/minibench/mini/trajectories/timeline"
)

// Printing says what is printed of trajectories.
type Printing struct {
	Path string
	// Filter and Sorting are of the list.
	Filter  filter.Filter
	Sorting Sorting
	// All lists attempts that do not count too.
	All  bool
	JSON bool
	// Step is the only one of a trajectory that is printed, where it is not nil;
	// 0 are the prompts.
	Step      *int
	Reasoning bool
	Colours   bool // of outputs; what is printed is fit for a terminal either way
}

// ErrNothing says that there is no trajectory.
type ErrNothing struct{ Path, Why string }

func (e *ErrNothing) Error() string {
	if e.Why != "" {
		return e.Why
	}
	return e.Path + ": no trajectories here; files of trajectories end in .json, .jsonl or .traj"
}

// Print writes the list of a source, or the one trajectory that it has. Notes are
// on what could not be read.
func Print(ctx context.Context, w io.Writer, p Printing) (notes []string, err error) {
	src, err := OpenSource(p.Path)
	if err != nil {
		return nil, err
	}
	l := newList()
	l.filter, l.sorting, l.all = p.Filter, p.Sorting, p.All
	err = src.Walk(ctx, p.Filter, func(b Batch) error {
		for _, it := range b.Items {
			l.items[it.key()] = it
		}
		notes = append(notes, b.Notes...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.arrange()
	out := bufio.NewWriter(w)
	switch {
	case len(l.items) == 0:
		return notes, &ErrNothing{Path: p.Path}
	case p.JSON:
		err = l.json(out)
	case p.Step != nil && len(l.visible) != 1:
		why := fmt.Sprintf("--step is for one trajectory, and here are %d; name a file", len(l.visible))
		return notes, &ErrNothing{Why: why}
	case src.Single() && len(l.visible) > 0 && !slices.ContainsFunc(l.visible, (*Item).isThere):
		return notes, &ErrNothing{Why: l.visible[0].Problem} // as of all others
	case len(l.visible) == 1 && (p.Step != nil || src.Single() && len(l.items) == 1):
		err = p.print(out, l.visible[0])
	default:
		err = l.print(out)
	}
	return notes, cmp.Or(err, out.Flush())
}

// isThere says that an item stands for a trajectory, and not for a file that has none.
func (it *Item) isThere() bool { return it.Row >= 0 }

// print is one trajectory.
func (p Printing) print(w io.Writer, it *Item) error {
	t, err := Open(it)
	if err != nil {
		return err
	}
	if p.Step != nil && (*p.Step < 0 || *p.Step > t.Replies()) {
		why := fmt.Sprintf("%s has no step %d: it has %d; 0 are the prompts", p.Path, *p.Step, t.Replies())
		return &ErrNothing{Why: why}
	}
	r := &reader{item: it, t: t, pages: t.All()}
	for i, step := range r.pages {
		if p.Step != nil && (step.Number != *p.Step || step == t.End) {
			continue
		}
		r.page = i
		name, facts := r.title()
		if i == 0 || p.Step != nil {
			if _, err := fmt.Fprintf(w, "=== %s\n", name); err != nil {
				return err
			}
		}
		if err := writeStep(w, facts, step, p.Reasoning, p.Colours); err != nil {
			return err
		}
	}
	return nil
}

// writeStep is a step as text.
func writeStep(w io.Writer, title string, step *timeline.Step, reasoning, colours bool) error {
	if _, err := fmt.Fprintf(w, "=== %s\n", title); err != nil {
		return err
	}
	for _, line := range (steps.Style{Plain: true, Labels: true, Reasoning: reasoning}).Step(step) {
		if !colours {
			line.Text = ansi.Strip(line.Text)
		}
		if _, err := fmt.Fprintln(w, line.Text); err != nil {
			return err
		}
	}
	return nil
}

// print is the list as a table, as wide as it needs to be.
func (l *list) print(w io.Writer) error {
	cols := l.columns(math.MaxInt)
	alignment, rows := "", [][]string{nil}
	for _, c := range cols {
		rows[0] = append(rows[0], c.head)
		alignment += map[bool]string{true: "r", false: "l"}[c.right]
	}
	for _, it := range l.visible {
		var row []string
		for _, c := range cols {
			row = append(row, steps.Word(c.text(it)))
		}
		rows = append(rows, row)
	}
	_, err := io.WriteString(w, report.Table(math.MaxInt, alignment, rows))
	return err
}

// json is the list as lines of JSON.
func (l *list) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, it := range l.visible {
		line := struct {
			Item
			Seconds float64 `json:"seconds"`
		}{*it, it.Took.Seconds()}
		line.Row, line.Flags = max(0, it.Row), append([]string{}, it.Flags...)
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
