package inspect

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
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
	Width     int  // of the list
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
		return notes, &ErrNothing{Why: fmt.Sprintf("--step is for one trajectory, and here are %d; name a file", len(l.visible))}
	case src.Single() && len(l.visible) > 0 && !slices.ContainsFunc(l.visible, func(it *Item) bool { return it.Row >= 0 }):
		return notes, &ErrNothing{Why: l.visible[0].Problem} // as of all others
	case len(l.visible) == 1 && (p.Step != nil || src.Single() && len(l.items) == 1):
		err = p.print(out, l.visible[0])
	default:
		err = l.print(out, max(p.Width, 40))
	}
	return notes, cmp.Or(err, out.Flush())
}

// print is one trajectory.
func (p Printing) print(w io.Writer, it *Item) error {
	t, err := Open(it)
	if err != nil {
		return err
	}
	if p.Step != nil && (*p.Step < 0 || *p.Step > t.Replies()) {
		return &ErrNothing{Why: fmt.Sprintf("%s has no step %d: it has %d; 0 are the prompts", p.Path, *p.Step, t.Replies())}
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

// print is the list as a table, as wide as it needs to be but for flags.
func (l *list) print(w io.Writer, width int) error {
	for _, it := range l.visible {
		width = max(width, screen.Width(steps.Word(l.nameOf(it)))+60)
	}
	for _, n := range l.wide {
		width += min(n, mostNamed) + 2
	}
	cols := l.columns(width)
	for i, c := range cols {
		if !c.right {
			c.width = len(c.head)
			for _, it := range l.visible {
				if it.State != Broken || i == 0 {
					c.width = max(c.width, screen.Width(steps.Word(c.text(it))))
				}
			}
			cols[i] = c
		}
	}
	line := func(parts []string) error {
		_, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(parts, "  "), " "))
		return err
	}
	var parts []string
	for _, c := range cols {
		parts = append(parts, c.fit(c.head))
	}
	if err := line(parts); err != nil {
		return err
	}
	for _, it := range l.visible {
		parts = parts[:0]
		for _, c := range cols {
			parts = append(parts, c.fit(steps.Word(c.text(it))))
		}
		if it.State == Broken {
			parts = []string{screen.Fit(steps.Word(it.Name()), cols[0].width), "unreadable: " + steps.Word(it.why())}
		}
		if err := line(parts); err != nil {
			return err
		}
	}
	return nil
}

// listed is an item as --json has it.
type listed struct {
	ID       string   `json:"instance_id"`
	Attempt  int      `json:"attempt,omitempty"`
	Sample   int      `json:"sample,omitempty"`
	Run      string   `json:"run,omitempty"`
	Model    string   `json:"model,omitempty"`
	File     string   `json:"file,omitempty"`
	Row      int      `json:"row,omitempty"`
	Format   string   `json:"format,omitempty"`
	State    State    `json:"state"`
	Class    string   `json:"class,omitempty"`
	Status   string   `json:"exit_status,omitempty"`
	Verdict  string   `json:"verdict,omitempty"`
	Cost     *float64 `json:"cost"`
	Steps    int      `json:"steps"`
	Tokens   int64    `json:"tokens"`
	Seconds  float64  `json:"seconds"`
	Flags    []string `json:"flags"`
	Selected bool     `json:"selected"`
	Problem  string   `json:"problem,omitempty"`
}

// json is the list as lines of JSON.
func (l *list) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, it := range l.visible {
		line := listed{
			ID: it.ID, Attempt: it.Attempt, Sample: it.Sample, Run: it.Run, Model: it.Model, File: it.Path, Row: max(0, it.Row), Format: it.Format,
			State: it.State, Class: string(it.Class), Status: it.Status, Verdict: it.Verdict, Steps: it.Steps, Tokens: it.Tokens,
			Seconds: it.Took.Seconds(), Flags: slices.Clone(it.Flags), Selected: it.Selected, Problem: it.Problem,
		}
		if line.Flags == nil {
			line.Flags = []string{}
		}
		if it.Cost != nil {
			c := float64(*it.Cost)
			line.Cost = &c
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
