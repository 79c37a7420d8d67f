package inspect

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/filter"
	"github.com/minibench/mini/trajectories/timeline"
)

// list is the trajectories, in order and filtered.
type list struct {
	items   map[string]*Item
	visible []*Item
	named   map[string]int   // how many of those visible are of an instance of a run
	wide    map[Field]int    // of columns that are shown where values differ: the widest value
	runs    map[*Item]string // what the column of runs has
	cursor  int
	top     int
	moved   bool // by the user: it stays on its item
	sorting Sorting
	filter  filter.Filter
	line    string // the filter as it was typed
	all     bool   // attempts that do not count too

	files   int
	walking bool
	live    bool
	notes   []string
	failed  error // why the source could not be walked
}

func newList() *list { return &list{items: map[string]*Item{}} }

// maxNotes bounds what is kept of what could not be read.
const maxNotes = 100

// take takes in what was found.
func (l *list) take(b Batch) {
	for _, it := range b.Items {
		l.items[it.key()] = it
	}
	for _, n := range b.Notes {
		if len(l.notes) < maxNotes && !slices.Contains(l.notes, n) {
			l.notes = append(l.notes, n)
		}
	}
	l.files, l.live = b.Files, b.Live
	l.arrange()
}

// arrange sorts and filters anew; the cursor stays on its item, or at the top while
// the user has not moved it.
func (l *list) arrange() {
	at := l.current()
	if !l.moved {
		at, l.cursor = nil, 0
	}
	l.visible, l.named = l.visible[:0], map[string]int{}
	for _, it := range l.items {
		if (it.Selected || l.all) && !it.lacks && l.filter.Shows(it.row()) {
			l.visible = append(l.visible, it)
			l.named[it.Run+"\x00"+it.Name()]++
		}
	}
	l.compare()
	l.sorting.sort(l.visible)
	if at != nil {
		if i := slices.IndexFunc(l.visible, func(it *Item) bool { return it.key() == at.key() }); i >= 0 {
			l.cursor = i
		}
	}
	l.cursor = max(0, min(l.cursor, len(l.visible)-1))
}

func (l *list) current() *Item {
	if l.cursor < 0 || l.cursor >= len(l.visible) {
		return nil
	}
	return l.visible[l.cursor]
}

// compare finds out whether the items are of several runs, or of several models:
// their columns are shown only then. Runs are named from the folder that all of
// them are in. Files that are in no run have their folder in the place of one.
func (l *list) compare() {
	dirs, models := map[string]int{}, map[string]int{}
	above := ""
	for _, it := range l.items {
		dir := it.Run
		if dir == "" {
			dir = filepath.Dir(it.Path)
		}
		if above == "" {
			above = filepath.Dir(dir)
		}
		for !within(above, dir) && above != filepath.Dir(above) {
			above = filepath.Dir(above)
		}
		dirs[dir]++
		models[it.Model]++
	}
	l.wide, l.runs = map[Field]int{}, map[*Item]string{}
	for _, it := range l.items {
		dir := it.Run
		if dir == "" {
			dir = filepath.Dir(it.Path)
		}
		if rel, err := filepath.Rel(above, dir); err == nil {
			dir = rel
		}
		l.runs[it] = dir
		if len(dirs) > 1 {
			l.wide["run"] = max(l.wide["run"], screen.Width(steps.Word(dir)))
		}
		if len(models) > 1 {
			l.wide["model"] = max(l.wide["model"], screen.Width(steps.Word(it.Model)))
		}
	}
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// column is one of the list's.
type column struct {
	head  string
	field Field
	width int
	right bool
	text  func(*Item) string
}

// mostNamed is the most room for a run or a model, in cells.
const mostNamed = 20

// columns fit the width; those that say most stay longest.
func (l *list) columns(width int) []column {
	all := []column{
		{"STATUS", "status", 15, false, (*Item).Ending},
		{"VERDICT", "verdict", 11, false, func(it *Item) string { return strings.ReplaceAll(it.Verdict, "_", " ") }},
		{"STEPS", "steps", 5, true, func(it *Item) string { return numberOr(it, "steps", strconv.Itoa(it.Steps)) }},
		{"COST", "cost", 7, true, costOf},
		{"TIME", "time", 7, true, func(it *Item) string { return numberOr(it, "time", timeline.Clock(it.Took)) }},
		{"TOKENS", "tokens", 6, true, tokensOf},
		{"FLAGS", "flags", 40, false, (*Item).flags},
	}
	const least, gap = 24, 2
	if n := l.wide["model"]; n > 0 {
		named := func(it *Item) string { return it.Model }
		all = slices.Insert(all, 4, column{"MODEL", "model", max(5, min(n, mostNamed)), false, named})
	}
	if n := l.wide["run"]; n > 0 {
		named := func(it *Item) string { return l.runs[it] }
		all = slices.Insert(all, 0, column{"RUN", "run", max(3, min(n, mostNamed)), false, named})
	}
	room := width - least - 1
	var cols []column
	for _, c := range all {
		if c.field == "flags" {
			c.width = min(c.width, max(6, room-gap))
		}
		if room >= c.width+gap {
			cols, room = append(cols, c), room-c.width-gap
		}
	}
	id := column{"INSTANCE", "id", least + max(0, room), false, l.nameOf}
	return append([]column{id}, cols...)
}

// nameOf is how the list calls an item: with its attempt, where others of the
// instance are shown too: all of them, or one at work beside the one that counts.
func (l *list) nameOf(it *Item) string {
	if (l.all || l.named[it.Run+"\x00"+it.Name()] > 1) && it.Attempt > 0 && it.Run != "" {
		return it.Name() + " attempt " + strconv.Itoa(it.Attempt)
	}
	return it.Name()
}

func numberOr(it *Item, f Field, text string) string {
	if n, known, _ := f.number(it); known && (n != 0 || f == "steps") {
		return text
	}
	return ""
}

func tokensOf(it *Item) string { return numberOr(it, "tokens", timeline.Amount(it.Tokens)) }

func costOf(it *Item) string {
	switch {
	case it.State == Broken:
		return ""
	case it.Cost == nil:
		return "?"
	case *it.Cost == 0:
		return "-"
	}
	return timeline.Dollars(float64(*it.Cost))
}

// head is the line above the columns; the one that is sorted by has an arrow.
func (l *list) head(cols []column) string {
	parts := make([]string, len(cols))
	for i, c := range cols {
		text := c.head
		if c.field == cmp.Or(l.sorting.By, "id") {
			text += map[bool]string{false: "↑", true: "↓"}[l.sorting.Desc]
		}
		parts[i] = c.fit(text)
	}
	return " " + strings.Join(parts, "  ")
}

func (c column) fit(text string) string {
	if c.right {
		return screen.Right(text, c.width)
	}
	return screen.Fit(text, c.width)
}

// row is an item in its columns, coloured unless it is the current one.
func (l *list) row(it *Item, cols []column, current bool) string {
	parts := make([]string, len(cols))
	for i, c := range cols {
		text := c.fit(steps.Word(c.text(it)))
		switch {
		case current:
		case c.field == "status":
			text = steps.Coloured(it.tint(), text)
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

// counts says how many there are, and what is being done.
func (l *list) counts() string {
	shown, total := len(l.visible), 0
	for _, it := range l.items {
		if it.Selected || l.all {
			total++
		}
	}
	all := text.Count(total, "trajectory")
	if shown != total {
		all = fmt.Sprintf("%d of %s", shown, all)
	}
	if hidden := len(l.items) - total; hidden > 0 {
		all += " (a: " + text.Count(hidden, "more attempt") + ")"
	}
	var more []string
	if l.walking && l.files > 0 {
		more = append(more, text.Count(l.files, "file")+" looked at ...")
	}
	if l.live {
		more = append(more, "a mini is at work")
	}
	if n := len(l.notes); n > 0 {
		more = append(more, text.Count(n, "place")+" not read")
	}
	return strings.Join(append([]string{all}, more...), " · ")
}

// tint is the colour of how an item ended, or how far it is.
func (it *Item) tint() ansi.Color {
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
