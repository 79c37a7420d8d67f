package inspect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/runner/report"
)

// list is the trajectories, in order and filtered.
type list struct {
	items   map[string]*Item
	visible []*Item
	named   map[string]int // how many of those visible are of an instance of a run
	several map[Field]int  // of columns that are shown where values differ: the widest value, in cells
	above   string         // the folder that all runs are in
	alike   bool           // files that are in no run have the same name
	cursor  int
	top     int
	moved   bool // by the user: it stays on its item
	sorting Sorting
	filter  Filter
	line    string // the filter as it was typed
	all     bool   // attempts that do not count too

	files   int
	walking bool
	live    bool
	notes   []string
	failed  error // why the source could not be gone through

	search search
}

// search is the state of a full-text search.
type search struct {
	text    string
	match   *matcher // nil while nothing is searched for
	number  int
	hits    map[string]int
	done    int
	total   int
	failed  int
	running bool
	stop    context.CancelFunc
}

func newList() *list {
	return &list{items: map[string]*Item{}, sorting: Sorting{By: FieldID}, search: search{stop: func() {}}}
}

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
// nobody has moved it.
func (l *list) arrange() {
	at := l.current()
	if !l.moved {
		at, l.cursor = nil, 0
	}
	l.visible = l.visible[:0]
	for _, it := range l.items {
		if l.shows(it) {
			l.visible = append(l.visible, it)
		}
	}
	l.sorting.sort(l.visible)
	l.named = map[string]int{}
	for _, it := range l.visible {
		l.named[it.Run+"\x00"+it.Name()]++
	}
	l.compare()
	if at != nil {
		if i := slices.IndexFunc(l.visible, func(it *Item) bool { return it.key() == at.key() }); i >= 0 {
			l.cursor = i
		}
	}
	l.cursor = max(0, min(l.cursor, len(l.visible)-1))
}

func (l *list) shows(it *Item) bool {
	if !it.Selected && !l.all || !l.filter.Shows(it) {
		return false
	}
	return l.search.match == nil || l.search.hits[it.key()] > 0
}

// sought are the items that a search goes through.
func (l *list) sought() []*Item {
	var all []*Item
	for _, it := range l.items {
		if (it.Selected || l.all) && l.filter.Shows(it) {
			all = append(all, it)
		}
	}
	l.sorting.sort(all)
	return all
}

func (l *list) current() *Item {
	if l.cursor < 0 || l.cursor >= len(l.visible) {
		return nil
	}
	return l.visible[l.cursor]
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
		{"STATUS", FieldStatus, 15, false, (*Item).Ending},
		{"VERDICT", FieldVerdict, 11, false, func(it *Item) string { return strings.ReplaceAll(it.Verdict, "_", " ") }},
		{"STEPS", FieldSteps, 5, true, func(it *Item) string { return numberOr(it, FieldSteps, strconv.Itoa(it.Steps)) }},
		{"COST", FieldCost, 7, true, costOf},
		{"TIME", FieldTime, 7, true, func(it *Item) string { return numberOr(it, FieldTime, clock(it.Took)) }},
		{"TOKENS", FieldTokens, 6, true, func(it *Item) string { return numberOr(it, FieldTokens, amount(it.Tokens)) }},
		{"FLAGS", FieldFlags, 24, false, (*Item).flags},
	}
	const least, gap = 24, 2
	if n := l.several[FieldModel]; n > 0 {
		all = slices.Insert(all, 4, column{"MODEL", FieldModel, max(5, min(n, mostNamed)), false, func(it *Item) string { return it.Model }})
	}
	if n := l.several[FieldRun]; n > 0 {
		all = slices.Insert(all, 0, column{"RUN", FieldRun, max(3, min(n, mostNamed)), false, l.runOf})
	}
	if l.search.match != nil {
		all = slices.Insert(all, 0, column{"HITS", "", 4, true, func(it *Item) string { return strconv.Itoa(l.search.hits[it.key()]) }})
	}
	room := width - least - 1
	var cols []column
	for _, c := range all {
		if c.field == FieldFlags {
			c.width = min(c.width, max(6, room-gap))
		}
		if room >= c.width+gap {
			cols, room = append(cols, c), room-c.width-gap
		}
	}
	id := column{"INSTANCE", FieldID, least + max(0, room), false, l.nameOf}
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
	if n, ok := f.number(it); ok && (n != 0 || f == FieldSteps) {
		return text
	}
	return ""
}

func costOf(it *Item) string {
	switch {
	case it.State == Broken || it.State == Unread:
		return ""
	case it.Cost == nil:
		return "?"
	case *it.Cost == 0:
		return "-"
	}
	return dollars(float64(*it.Cost))
}

// head is the line above the columns; the one that is sorted by has an arrow.
func (l *list) head(cols []column) string {
	parts := make([]string, len(cols))
	for i, c := range cols {
		text := c.head
		if c.field == l.sorting.By {
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
	if it.State == Broken {
		line := screen.Fit(oneLine(it.Name()), cols[0].width) + "  unreadable: " + oneLine(it.why())
		width := 1
		for _, c := range cols {
			width += c.width + 2
		}
		line = " " + screen.Fit(line, width-3)
		if current {
			return reversed(line)
		}
		return coloured(it.tint(), line)
	}
	parts := make([]string, len(cols))
	for i, c := range cols {
		text := c.fit(oneLine(c.text(it)))
		switch {
		case current:
		case c.field == FieldStatus:
			text = coloured(it.tint(), text)
		case c.field == FieldVerdict && it.Verdict != "":
			text = coloured(verdictTint(it.Verdict), text)
		case !it.Selected:
			text = faint(text)
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
	text := plural(total, "trajectory")
	if shown != total {
		text = fmt.Sprintf("%d of %s", shown, text)
	}
	if hidden := len(l.items) - total; hidden > 0 {
		text += " (a: " + report.Count(hidden, "more attempt") + ")"
	}
	var more []string
	if l.walking && l.files > 0 {
		more = append(more, plural(l.files, "file")+" looked at ...")
	}
	if l.live {
		more = append(more, "a mini is at work")
	}
	if s := l.search; s.match != nil {
		what := fmt.Sprintf("%q", s.text)
		if s.running {
			what += fmt.Sprintf(" %d of %d, Esc stops", s.done, s.total)
		}
		if s.failed > 0 {
			what += ", not read: " + plural(s.failed, "file")
		}
		more = append(more, what)
	}
	if n := len(l.notes); n > 0 {
		more = append(more, plural(n, "place")+" not read")
	}
	return strings.Join(append([]string{text}, more...), " · ")
}

func plural(n int, noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok && n != 1 {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return report.Count(n, noun)
}
