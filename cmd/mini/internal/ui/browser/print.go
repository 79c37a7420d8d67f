package browser

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
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// PrintOptions configures Print.
type PrintOptions struct {
	Path string
	// Filter and SortOrder apply to the list.
	Filter    query.Filter
	SortOrder SortOrder
	// AllAttempts includes superseded attempts.
	AllAttempts bool
	JSON        bool
	// Step selects one step of a trajectory, where 0 stands for the prompts; nil selects all
	// steps.
	Step      *int
	Reasoning bool // print reasoning
	Colours   bool // keep the colours of outputs
}

// NotFoundError means that a source has no trajectory, not the requested step, or several
// trajectories where Step needs one. A Reason replaces the default message.
type NotFoundError struct{ Path, Reason string }

func (e *NotFoundError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return e.Path + ": no trajectories found; their files end in .json, .jsonl or .traj"
}

// Print writes the list of a source. Without JSON, it writes the only trajectory instead if Step
// is set or IsSingle holds for the source. The notes are messages about files that could not be
// read.
func Print(ctx context.Context, w io.Writer, p PrintOptions) (notes []string, err error) {
	src, err := OpenSource(p.Path)
	if err != nil {
		return nil, err
	}
	l := newList()
	l.filter, l.order, l.allAttempts = p.Filter, p.SortOrder, p.AllAttempts
	err = src.Walk(ctx, p.Filter, func(b Batch) error {
		for _, e := range b.Entries {
			l.entries[e.key()] = e
		}
		notes = append(notes, b.Notes...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.update()
	out := bufio.NewWriter(w)
	switch {
	case len(l.entries) == 0:
		return notes, &NotFoundError{Path: p.Path}
	case p.JSON:
		err = l.json(out)
	case p.Step != nil && len(l.visible) != 1:
		reason := fmt.Sprintf("--step needs one trajectory, but there are %d; name a file", len(l.visible))
		return notes, &NotFoundError{Reason: reason}
	case src.IsSingle() && len(l.visible) > 0 && !slices.ContainsFunc(l.visible, (*Entry).isTrajectory):
		return notes, &NotFoundError{Reason: l.visible[0].Problem} // one problem stands for all
	case len(l.visible) == 1 && (p.Step != nil || src.IsSingle() && len(l.entries) == 1):
		err = p.print(out, l.visible[0])
	default:
		err = l.print(out)
	}
	return notes, cmp.Or(err, out.Flush())
}

// isTrajectory reports whether an entry is a trajectory, and not only a read error.
func (e *Entry) isTrajectory() bool { return e.Row >= 0 }

// print writes one trajectory.
func (p PrintOptions) print(w io.Writer, e *Entry) error {
	t, err := OpenTrajectory(e)
	if err != nil {
		return err
	}
	if p.Step != nil && (*p.Step < 0 || *p.Step > t.ReplyCount()) {
		reason := fmt.Sprintf("%s has no step %d: there are %d; 0 is the prompts", p.Path, *p.Step, t.ReplyCount())
		return &NotFoundError{Reason: reason}
	}
	r := &reader{entry: e, trajectory: t, pages: t.AllSteps()}
	for i, step := range r.pages {
		if p.Step != nil && (step.Number != *p.Step || step == t.End) {
			continue
		}
		r.page = i
		name, subtitle := r.title()
		if i == 0 || p.Step != nil {
			if _, err := fmt.Fprintf(w, "=== %s\n", name); err != nil {
				return err
			}
		}
		if err := writeStep(w, subtitle, step, p.Reasoning, p.Colours); err != nil {
			return err
		}
	}
	return nil
}

// writeStep writes a step as text.
func writeStep(w io.Writer, title string, step *timeline.Step, reasoning, colours bool) error {
	if _, err := fmt.Fprintf(w, "=== %s\n", title); err != nil {
		return err
	}
	for _, line := range (steps.Renderer{Plain: true, Labels: true, Reasoning: reasoning}).Step(step) {
		if !colours {
			line.Text = ansi.Strip(line.Text)
		}
		if _, err := fmt.Fprintln(w, line.Text); err != nil {
			return err
		}
	}
	return nil
}

// print writes the list as a table. The width is not limited.
func (l *list) print(w io.Writer) error {
	cols := l.columns(math.MaxInt)
	alignment, rows := "", [][]string{nil}
	for _, c := range cols {
		rows[0] = append(rows[0], c.header)
		alignment += map[bool]string{true: "r", false: "l"}[c.rightAligned]
	}
	for _, e := range l.visible {
		var row []string
		for _, c := range cols {
			row = append(row, steps.OneLine(c.text(e)))
		}
		rows = append(rows, row)
	}
	_, err := io.WriteString(w, table.Table(math.MaxInt, alignment, rows))
	return err
}

// json writes the list as JSON lines.
func (l *list) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, e := range l.visible {
		line := struct {
			Entry
			Seconds float64 `json:"seconds"`
		}{*e, e.Duration.Seconds()}
		line.Row, line.Flags = max(0, e.Row), append([]string{}, e.Flags...)
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
