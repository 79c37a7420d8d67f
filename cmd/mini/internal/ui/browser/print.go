package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/trajectories/timeline"
)

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
// is set, or if the path is a file or a part of a run. The notes are messages about files that
// could not be read.
func Print(ctx context.Context, w io.Writer, o Options) (notes []string, err error) {
	found, err := walk(ctx, o.Path, o.Filter, func(listing) {})
	if err != nil {
		return nil, err
	}
	l := &list{Options: o, found: found}
	l.choose()
	text, isOne := "", len(l.visible) == 1
	isTrajectory := func(e *Entry) bool { return e.Row >= 0 } // and not only a read error
	switch {
	case len(found.entries) == 0:
		err = &NotFoundError{Path: o.Path}
	case o.JSON:
		return found.problems, l.json(w)
	case o.Step != nil && !isOne:
		err = &NotFoundError{Reason: fmt.Sprintf("--step needs one trajectory, but there are %d; name a file", len(l.visible))}
	case found.single && len(l.visible) > 0 && !slices.ContainsFunc(l.visible, isTrajectory):
		err = &NotFoundError{Reason: l.visible[0].Problem} // one problem stands for all
	case isOne && (o.Step != nil || found.single && len(found.entries) == 1):
		text, err = o.trajectoryText(l.visible[0])
	default:
		text = l.text()
	}
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return found.problems, err
}

// trajectoryText returns a trajectory, or one step of it, as text.
func (o Options) trajectoryText(e *Entry) (string, error) {
	t, err := OpenTrajectory(e)
	if err != nil {
		return "", err
	}
	pages := t.AllSteps()
	if o.Step != nil {
		if *o.Step < 0 || *o.Step > t.ReplyCount() {
			return "", &NotFoundError{Reason: fmt.Sprintf("%s has no step %d: there are %d; 0 is the prompts", o.Path, *o.Step, t.ReplyCount())}
		}
		pages = pages[*o.Step : *o.Step+1]
	}
	r := &reader{entry: e, trajectory: t, reasoning: o.Reasoning}
	return r.text(pages, o.Colours), nil
}

// text returns steps as text.
func (r *reader) text(pages []*timeline.Step, colours bool) string {
	name, _ := r.title(pages[0])
	var b strings.Builder
	b.WriteString("=== " + name + "\n")
	for _, step := range pages {
		_, title := r.title(step)
		b.WriteString("=== " + title + "\n")
		for _, line := range (steps.Renderer{Plain: true, Labels: true, Reasoning: r.reasoning}).Step(step) {
			if !colours {
				line.Text = ansi.Strip(line.Text)
			}
			b.WriteString(line.Text + "\n")
		}
	}
	return b.String()
}

// text returns the list as a table. The width is not limited.
func (l *list) text() string {
	columns := columnsFor(l.found.entries, math.MaxInt)
	alignment, rows := "", make([][]string, len(l.visible)+1)
	for _, c := range columns {
		rows[0] = append(rows[0], c.header)
		alignment += map[bool]string{true: "r", false: "l"}[c.number != nil]
		for i, e := range l.visible {
			rows[i+1] = append(rows[i+1], c.cell(e))
		}
	}
	return table.Table(math.MaxInt, alignment, rows)
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
