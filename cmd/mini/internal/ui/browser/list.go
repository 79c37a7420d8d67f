package browser

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/query"
)

// list is the sorted and filtered list of trajectories.
type list struct {
	entries      map[string]*Entry
	visible      []*Entry          // filtered and sorted
	nameCounts   map[string]int    // number of visible entries by run and Entry.Name
	columnWidths map[SortField]int // width of the widest RUN and MODEL value; 0 hides the column
	runNames     map[*Entry]string // values of the RUN column
	cursor       int               // index in visible
	top          int               // index in visible of the first entry on the screen
	cursorMoved  bool              // the user has moved the cursor, so it stays on its entry
	order        SortOrder
	filter       query.Filter
	filterText   string // filter as typed
	allAttempts  bool   // include superseded attempts

	files     int      // number of files scanned so far
	walking   bool     // a walk of the source is in progress
	running   bool     // a process is working on a run of the source
	problems  []string // read errors
	walkError error    // why the last walk failed
}

func newList() *list { return &list{entries: map[string]*Entry{}} }

// maxProblems bounds the stored read errors.
const maxProblems = 100

// add adds a batch of entries.
func (l *list) add(b Batch) {
	for _, e := range b.Entries {
		l.entries[e.key()] = e
	}
	for _, note := range b.Notes {
		if len(l.problems) < maxProblems && !slices.Contains(l.problems, note) {
			l.problems = append(l.problems, note)
		}
	}
	l.files, l.running = b.Files, b.Running
	l.update()
}

// update sorts and filters the entries. The cursor stays on its entry, or at the top until the
// user moves it.
func (l *list) update() {
	current := l.current()
	if !l.cursorMoved {
		current, l.cursor = nil, 0
	}
	l.visible, l.nameCounts = l.visible[:0], map[string]int{}
	for _, e := range l.entries {
		if (e.Selected || l.allAttempts) && !e.textMissing && l.filter.Matches(e.filterRow()) {
			l.visible = append(l.visible, e)
			l.nameCounts[e.Run+"\x00"+e.Name()]++
		}
	}
	l.updateColumns()
	l.order.sort(l.visible)
	if current != nil {
		if i := slices.IndexFunc(l.visible, func(e *Entry) bool { return e.key() == current.key() }); i >= 0 {
			l.cursor = i
		}
	}
	l.cursor = max(0, min(l.cursor, len(l.visible)-1))
}

func (l *list) current() *Entry {
	if l.cursor < 0 || l.cursor >= len(l.visible) {
		return nil
	}
	return l.visible[l.cursor]
}

// updateColumns sets the names and widths of the RUN and MODEL columns. It hides a column in
// which all values are equal. The name of a run is its path relative to the common parent of all
// runs. For a file outside of runs, its folder stands for the run.
func (l *list) updateColumns() {
	dirs, models := map[string]int{}, map[string]int{}
	parent := ""
	for _, e := range l.entries {
		dir := e.Run
		if dir == "" {
			dir = filepath.Dir(e.Path)
		}
		if parent == "" {
			parent = filepath.Dir(dir)
		}
		for !isWithin(parent, dir) && parent != filepath.Dir(parent) {
			parent = filepath.Dir(parent)
		}
		dirs[dir]++
		models[e.Model]++
	}
	l.columnWidths, l.runNames = map[SortField]int{}, map[*Entry]string{}
	for _, e := range l.entries {
		dir := e.Run
		if dir == "" {
			dir = filepath.Dir(e.Path)
		}
		if rel, err := filepath.Rel(parent, dir); err == nil {
			dir = rel
		}
		l.runNames[e] = dir
		if len(dirs) > 1 {
			l.columnWidths["run"] = max(l.columnWidths["run"], terminal.Width(steps.OneLine(dir)))
		}
		if len(models) > 1 {
			l.columnWidths["model"] = max(l.columnWidths["model"], terminal.Width(steps.OneLine(e.Model)))
		}
	}
}

func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// column is a column of the list.
type column struct {
	header       string
	field        SortField
	width        int
	rightAligned bool
	text         func(*Entry) string
}

// maxNameWidth is the maximum width of the RUN and MODEL columns.
const maxNameWidth = 20

// columns returns the columns for a width: always the name and, of the others in order of
// importance, each one that still fits.
func (l *list) columns(width int) []column {
	candidates := []column{
		{"STATUS", "status", 15, false, (*Entry).StatusText},
		{"VERDICT", "verdict", 11, false, func(e *Entry) string { return strings.ReplaceAll(e.Verdict, "_", " ") }},
		{"STEPS", "steps", 5, true, func(e *Entry) string { return numberText(e, "steps", strconv.Itoa(e.Steps)) }},
		{"COST", "cost", 7, true, costText},
		{"TIME", "time", 7, true, func(e *Entry) string { return numberText(e, "time", unit.Duration(e.Duration)) }},
		{"TOKENS", "tokens", 6, true, tokensText},
		{"FLAGS", "flags", 40, false, (*Entry).flagText},
	}
	const minIDWidth, gap = 24, 2
	if n := l.columnWidths["model"]; n > 0 {
		nameText := func(e *Entry) string { return e.Model }
		candidates = slices.Insert(candidates, 4, column{"MODEL", "model", max(5, min(n, maxNameWidth)), false, nameText})
	}
	if n := l.columnWidths["run"]; n > 0 {
		nameText := func(e *Entry) string { return l.runNames[e] }
		candidates = slices.Insert(candidates, 0, column{"RUN", "run", max(3, min(n, maxNameWidth)), false, nameText})
	}
	remaining := width - minIDWidth - 1
	var cols []column
	for _, c := range candidates {
		if c.field == "flags" {
			c.width = min(c.width, max(6, remaining-gap))
		}
		if remaining >= c.width+gap {
			cols, remaining = append(cols, c), remaining-c.width-gap
		}
	}
	id := column{"INSTANCE", "id", minIDWidth + max(0, remaining), false, l.displayName}
	return append([]column{id}, cols...)
}

// displayName returns the name of an entry. In a run, it adds the attempt number if the list
// includes superseded attempts, or if several visible entries have this name.
func (l *list) displayName(e *Entry) string {
	if (l.allAttempts || l.nameCounts[e.Run+"\x00"+e.Name()] > 1) && e.Attempt > 0 && e.Run != "" {
		return e.Name() + " attempt " + strconv.Itoa(e.Attempt)
	}
	return e.Name()
}

func numberText(e *Entry, f SortField, text string) string {
	if n, known, _ := f.numberValue(e); known && (n != 0 || f == "steps") {
		return text
	}
	return ""
}

func tokensText(e *Entry) string { return numberText(e, "tokens", unit.Count(e.Tokens)) }

func costText(e *Entry) string {
	switch {
	case e.State == Broken:
		return ""
	case e.Cost == nil:
		return "?"
	case *e.Cost == 0:
		return "-"
	}
	return unit.Money(float64(*e.Cost))
}

// header returns the header line; an arrow marks the sort column.
func (l *list) header(cols []column) string {
	parts := make([]string, len(cols))
	for i, c := range cols {
		text := c.header
		if c.field == cmp.Or(l.order.By, "id") {
			text += map[bool]string{false: "↑", true: "↓"}[l.order.Desc]
		}
		parts[i] = c.fit(text)
	}
	return " " + strings.Join(parts, "  ")
}

func (c column) fit(text string) string {
	if c.rightAligned {
		return terminal.PadLeft(text, c.width)
	}
	return terminal.PadRight(text, c.width)
}

// row renders an entry. The current entry is shown in reverse video, the others in colours.
func (l *list) row(e *Entry, cols []column, current bool) string {
	parts := make([]string, len(cols))
	for i, c := range cols {
		text := c.fit(steps.OneLine(c.text(e)))
		switch {
		case current:
		case c.field == "status":
			text = steps.Coloured(e.colour(), text)
		case c.field == "verdict" && e.Verdict != "":
			text = steps.Coloured(steps.VerdictColour(verdicts.Class(e.Verdict)), text)
		case !e.Selected:
			text = steps.Faint(text)
		}
		parts[i] = text
	}
	line := " " + strings.Join(parts, "  ")
	if current {
		return reversed(line)
	}
	return line
}

// summary returns the line above the list: the number of entries, the states of the walk and the
// run, and the number of read errors.
func (l *list) summary() string {
	shown, total := len(l.visible), 0
	for _, e := range l.entries {
		if e.Selected || l.allAttempts {
			total++
		}
	}
	counts := text.Count(total, "trajectory")
	if shown != total {
		counts = fmt.Sprintf("%d of %s", shown, counts)
	}
	if hidden := len(l.entries) - total; hidden > 0 {
		counts += " (a: " + text.Count(hidden, "more attempt") + ")"
	}
	var parts []string
	if l.walking && l.files > 0 {
		parts = append(parts, text.Count(l.files, "file")+" scanned ...")
	}
	if l.running {
		parts = append(parts, "run in progress")
	}
	if n := len(l.problems); n > 0 {
		parts = append(parts, text.Count(n, "read error"))
	}
	return strings.Join(append([]string{counts}, parts...), " · ")
}

// colour returns the colour of an entry's status.
func (e *Entry) colour() ansi.Color {
	switch e.State {
	case Running:
		return ansi.Cyan
	case Broken:
		return ansi.Red
	case Stopped:
		return ansi.Yellow
	}
	return steps.ClassColour(e.Class)
}

func reversed(s string) string { return ansi.NewStyle().Reverse(true).Styled(s) }
