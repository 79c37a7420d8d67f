package browser

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/table"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/verdicts"
)

// list is the sorted and filtered list of trajectories.
type list struct {
	Options
	found       listing
	visible     []*Entry    // filtered and sorted
	table       table.Model // shows the visible entries
	columns     []column    // those of the table
	width       int
	cursorMoved bool  // the user has moved the cursor, so it stays on its entry
	walking     bool  // a walk of the source is in progress
	walkError   error // why the last walk failed
}

func newList(o Options) *list {
	t := table.New(table.WithFocused(true), table.WithKeyMap(table.KeyMap{
		LineUp: bind("up k"), LineDown: bind("down j"), PageUp: bind("pgup"), PageDown: bind("pgdown space"),
		GotoTop: bind("home 0"), GotoBottom: bind("end $ G"),
		HalfPageUp: key.NewBinding(), HalfPageDown: key.NewBinding(),
	}))
	t.SetStyles(table.Styles{
		Header: lipgloss.NewStyle().Bold(true).Padding(0, 1), Cell: lipgloss.NewStyle().Padding(0, 1),
		Selected: lipgloss.NewStyle().Reverse(true).Transform(ansi.Strip), // a colour's end would end the reverse video
	})
	return &list{Options: o, table: t}
}

// update filters and sorts the entries, and fills the table. The cursor stays on its entry, or at the
// top until the user moves it.
func (l *list) update() {
	current, cursor := l.current(), 0
	l.choose()
	if current != nil && l.cursorMoved {
		cursor = l.index(current)
	}
	l.layout()
	l.setCursor(cursor)
}

// choose filters and sorts the entries.
func (l *list) choose() {
	l.visible = nil
	parent, counts := "", map[string]int{} // of visible entries, by run and name
	for _, e := range l.found.entries {
		e.runName = cmp.Or(e.Run, filepath.Dir(e.Path))
		parent = cmp.Or(parent, filepath.Dir(e.runName))
		for parent != filepath.Dir(parent) && !strings.HasPrefix(e.runName, parent+string(filepath.Separator)) {
			parent = filepath.Dir(parent)
		}
		if (e.Selected || l.AllAttempts) && !e.textMissing && l.Filter.Matches(e.filterRow()) {
			l.visible = append(l.visible, e)
			counts[e.Run+"\x00"+e.Name()]++
		}
	}
	for _, e := range l.found.entries {
		e.isNumbered = (l.AllAttempts || counts[e.Run+"\x00"+e.Name()] > 1) && e.Attempt > 0 && e.Run != ""
		if rel, err := filepath.Rel(parent, e.runName); err == nil {
			e.runName = rel
		}
	}
	l.SortOrder.sort(l.visible)
}

// resize sets the size of the table, with its head.
func (l *list) resize(width, height int) {
	l.width = width
	l.table.SetWidth(width)
	l.table.SetHeight(height)
	l.layout()
}

// isEmpty reports whether there is nothing to show, also later.
func (l *list) isEmpty() bool {
	return len(l.found.entries) == 0 && !l.walking && !l.found.running
}

// layout fills the table.
func (l *list) layout() {
	l.columns = columnsFor(l.found.entries, l.width)
	heads, rows := make([]table.Column, len(l.columns)), make([]table.Row, len(l.visible))
	for i, c := range l.columns {
		heads[i] = table.Column{Title: c.header, Width: c.width}
		if c.field == cmp.Or(l.SortOrder.By, "id") {
			heads[i].Title += map[bool]string{false: "↑", true: "↓"}[l.SortOrder.Desc]
		}
		heads[i].Title = c.align(heads[i].Title)
	}
	for i, e := range l.visible {
		for _, c := range l.columns {
			rows[i] = append(rows[i], e.coloured(c.field, c.align(c.cell(e))))
		}
	}
	cursor := l.table.Cursor()
	if len(heads) != len(l.table.Columns()) {
		l.table.SetRows(nil) // rows must have as many cells as there are columns
	}
	l.table.SetColumns(heads)
	l.table.SetRows(rows)
	l.setCursor(cursor)
}

// setCursor moves the cursor, and scrolls until it is visible.
func (l *list) setCursor(i int) {
	l.table.SetCursor(max(0, i))
	l.table.MoveUp(0) // SetCursor does not scroll
	l.table.MoveDown(0)
}

// index returns the position of an entry in the list; negative if it is not visible.
func (l *list) index(e *Entry) int {
	return slices.IndexFunc(l.visible, func(v *Entry) bool { return v.isSame(e) })
}

// current returns the entry under the cursor; nil if the list is empty.
func (l *list) current() *Entry {
	if i := l.table.Cursor(); i >= 0 && i < len(l.visible) {
		return l.visible[i]
	}
	return nil
}

// sortNext sorts by the next column: numbers in descending order, texts in ascending order.
func (l *list) sortNext() {
	i := slices.IndexFunc(l.columns, func(c column) bool { return c.field == cmp.Or(l.SortOrder.By, "id") })
	next := l.columns[(i+1)%len(l.columns)]
	l.SortOrder = SortOrder{next.field, next.number != nil}
	l.update()
}

// coloured colours the text of a cell.
func (e *Entry) coloured(field SortField, text string) string {
	switch {
	case field == "verdict" && e.Verdict != "":
		return steps.Coloured(steps.VerdictColour(verdicts.Class(e.Verdict)), text)
	case field == "status" && e.State == Ended:
		return steps.Coloured(steps.ClassColour(e.Class), text)
	case field == "status":
		return steps.Coloured(map[State]ansi.Color{Running: ansi.Cyan, Broken: ansi.Red, Stopped: ansi.Yellow}[e.State], text)
	case !e.Selected:
		return steps.Faint(text)
	}
	return text
}

// summary returns the line above the list: the number of entries, the states of the walk and the
// run, and the number of read errors.
func (l *list) summary() string {
	total := 0
	for _, e := range l.found.entries {
		if e.Selected || l.AllAttempts {
			total++
		}
	}
	counts := text.Count(total, "trajectory")
	if shown := len(l.visible); shown != total {
		counts = fmt.Sprintf("%d of %s", shown, counts)
	}
	if hidden := len(l.found.entries) - total; hidden > 0 {
		counts += " (a: " + text.Count(hidden, "more attempt") + ")"
	}
	if l.walking && l.found.files > 0 {
		counts += " · " + text.Count(l.found.files, "file") + " scanned ..."
	}
	if l.found.running {
		counts += " · run in progress"
	}
	if l.FilterText != "" {
		counts += " · filter: " + l.FilterText
	}
	if n := len(l.found.problems); n > 0 {
		counts += " · " + text.Count(n, "read error") + ": " + l.found.problems[0]
	}
	return counts
}

// emptyText explains why the list is empty.
func (l *list) emptyText() string {
	switch {
	case l.walkError != nil:
		return steps.OneLine(l.walkError.Error())
	case l.walking:
		return "looking for trajectories ..."
	case l.FilterText != "":
		return "no match; Esc removes the filter"
	}
	return "no trajectories found: their files end in .json, .jsonl or .traj"
}
