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
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// list is the sorted and filtered list of trajectories.
type list struct {
	entries      map[string]*Entry
	visible      []*Entry
	nameCounts   map[string]int    // number of visible entries by run and instance
	columnWidths map[SortField]int // widest value of the RUN and MODEL columns; 0 hides the column
	runNames     map[*Entry]string // values of the RUN column
	cursor       int
	top          int
	cursorMoved  bool // by the user: the cursor stays on its entry
	order        SortOrder
	filter       query.Filter
	filterText   string // filter as typed
	allAttempts  bool   // include superseded attempts

	files     int
	walking   bool
	running   bool
	problems  []string
	walkError error // error of walking the source
}

func newList() *list { return &list{entries: map[string]*Entry{}} }

// maxProblems bounds the stored read errors.
const maxProblems = 100

// add adds a batch of entries.
func (l *list) add(b Batch) {
	for _, it := range b.Entries {
		l.entries[it.key()] = it
	}
	for _, n := range b.Notes {
		if len(l.problems) < maxProblems && !slices.Contains(l.problems, n) {
			l.problems = append(l.problems, n)
		}
	}
	l.files, l.running = b.Files, b.Running
	l.update()
}

// update sorts and filters the entries. The cursor stays on its entry, or at the top until the
// user moves it.
func (l *list) update() {
	at := l.current()
	if !l.cursorMoved {
		at, l.cursor = nil, 0
	}
	l.visible, l.nameCounts = l.visible[:0], map[string]int{}
	for _, it := range l.entries {
		if (it.Selected || l.allAttempts) && !it.textMissing && l.filter.Matches(it.filterRow()) {
			l.visible = append(l.visible, it)
			l.nameCounts[it.Run+"\x00"+it.Name()]++
		}
	}
	l.updateColumns()
	l.order.sort(l.visible)
	if at != nil {
		if i := slices.IndexFunc(l.visible, func(it *Entry) bool { return it.key() == at.key() }); i >= 0 {
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

// updateColumns decides whether the RUN and MODEL columns are shown: only if values differ.
// Run names are relative to the common parent of all runs. Files outside of runs show their
// folder.
func (l *list) updateColumns() {
	dirs, models := map[string]int{}, map[string]int{}
	above := ""
	for _, it := range l.entries {
		dir := it.Run
		if dir == "" {
			dir = filepath.Dir(it.Path)
		}
		if above == "" {
			above = filepath.Dir(dir)
		}
		for !isWithin(above, dir) && above != filepath.Dir(above) {
			above = filepath.Dir(above)
		}
		dirs[dir]++
		models[it.Model]++
	}
	l.columnWidths, l.runNames = map[SortField]int{}, map[*Entry]string{}
	for _, it := range l.entries {
		dir := it.Run
		if dir == "" {
			dir = filepath.Dir(it.Path)
		}
		if rel, err := filepath.Rel(above, dir); err == nil {
			dir = rel
		}
		l.runNames[it] = dir
		if len(dirs) > 1 {
			l.columnWidths["run"] = max(l.columnWidths["run"], terminal.Width(steps.OneLine(dir)))
		}
		if len(models) > 1 {
			l.columnWidths["model"] = max(l.columnWidths["model"], terminal.Width(steps.OneLine(it.Model)))
		}
	}
}

func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// column is a column of the list.
type column struct {
	head  string
	field SortField
	width int
	right bool
	text  func(*Entry) string
}

// maxNameWidth is the maximum width of a run or a model.
const maxNameWidth = 20

// columns returns the columns that fit into a width; the most important ones come first.
func (l *list) columns(width int) []column {
	all := []column{
		{"STATUS", "status", 15, false, (*Entry).StatusText},
		{"VERDICT", "verdict", 11, false, func(it *Entry) string { return strings.ReplaceAll(it.Verdict, "_", " ") }},
		{"STEPS", "steps", 5, true, func(it *Entry) string { return numberText(it, "steps", strconv.Itoa(it.Steps)) }},
		{"COST", "cost", 7, true, costText},
		{"TIME", "time", 7, true, func(it *Entry) string { return numberText(it, "time", timeline.FormatDuration(it.Duration)) }},
		{"TOKENS", "tokens", 6, true, tokensText},
		{"FLAGS", "flags", 40, false, (*Entry).flagText},
	}
	const minIDWidth, gap = 24, 2
	if n := l.columnWidths["model"]; n > 0 {
		nameText := func(it *Entry) string { return it.Model }
		all = slices.Insert(all, 4, column{"MODEL", "model", max(5, min(n, maxNameWidth)), false, nameText})
	}
	if n := l.columnWidths["run"]; n > 0 {
		nameText := func(it *Entry) string { return l.runNames[it] }
		all = slices.Insert(all, 0, column{"RUN", "run", max(3, min(n, maxNameWidth)), false, nameText})
	}
	room := width - minIDWidth - 1
	var cols []column
	for _, c := range all {
		if c.field == "flags" {
			c.width = min(c.width, max(6, room-gap))
		}
		if room >= c.width+gap {
			cols, room = append(cols, c), room-c.width-gap
		}
	}
	id := column{"INSTANCE", "id", minIDWidth + max(0, room), false, l.displayName}
	return append([]column{id}, cols...)
}

// displayName returns the name of an entry, with its attempt number if several attempts of the
// instance are visible.
func (l *list) displayName(it *Entry) string {
	if (l.allAttempts || l.nameCounts[it.Run+"\x00"+it.Name()] > 1) && it.Attempt > 0 && it.Run != "" {
		return it.Name() + " attempt " + strconv.Itoa(it.Attempt)
	}
	return it.Name()
}

func numberText(it *Entry, f SortField, text string) string {
	if n, known, _ := f.numberValue(it); known && (n != 0 || f == "steps") {
		return text
	}
	return ""
}

func tokensText(it *Entry) string { return numberText(it, "tokens", timeline.FormatCount(it.Tokens)) }

func costText(it *Entry) string {
	switch {
	case it.State == Broken:
		return ""
	case it.Cost == nil:
		return "?"
	case *it.Cost == 0:
		return "-"
	}
	return timeline.FormatCost(float64(*it.Cost))
}

// header returns the header line; an arrow marks the sort column.
func (l *list) header(cols []column) string {
	parts := make([]string, len(cols))
	for i, c := range cols {
		text := c.head
		if c.field == cmp.Or(l.order.By, "id") {
			text += map[bool]string{false: "↑", true: "↓"}[l.order.Desc]
		}
		parts[i] = c.fit(text)
	}
	return " " + strings.Join(parts, "  ")
}

func (c column) fit(text string) string {
	if c.right {
		return terminal.PadLeft(text, c.width)
	}
	return terminal.PadRight(text, c.width)
}

// row renders an entry; the current one is reversed, the others are coloured.
func (l *list) row(it *Entry, cols []column, current bool) string {
	parts := make([]string, len(cols))
	for i, c := range cols {
		text := c.fit(steps.OneLine(c.text(it)))
		switch {
		case current:
		case c.field == "status":
			text = steps.Coloured(it.colour(), text)
		case c.field == "verdict" && it.Verdict != "":
			text = steps.Coloured(steps.VerdictColour(verdicts.Class(it.Verdict)), text)
		case !it.Selected:
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

// summary returns the number of entries and the state of the walk.
func (l *list) summary() string {
	shown, total := len(l.visible), 0
	for _, it := range l.entries {
		if it.Selected || l.allAttempts {
			total++
		}
	}
	all := text.Count(total, "trajectory")
	if shown != total {
		all = fmt.Sprintf("%d of %s", shown, all)
	}
	if hidden := len(l.entries) - total; hidden > 0 {
		all += " (a: " + text.Count(hidden, "more attempt") + ")"
	}
	var more []string
	if l.walking && l.files > 0 {
		more = append(more, text.Count(l.files, "file")+" scanned ...")
	}
	if l.running {
		more = append(more, "run in progress")
	}
	if n := len(l.problems); n > 0 {
		more = append(more, text.Count(n, "read error"))
	}
	return strings.Join(append([]string{all}, more...), " · ")
}

// colour returns the colour of an entry's status.
func (it *Entry) colour() ansi.Color {
	switch it.State {
	case Running:
		return ansi.Cyan
	case Broken:
		return ansi.Red
	case Stopped:
		return ansi.Yellow
	}
	return steps.ClassColour(it.Class)
}

func reversed(s string) string { return ansi.NewStyle().Reverse(true).Styled(s) }
