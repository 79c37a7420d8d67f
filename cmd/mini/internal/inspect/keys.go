package inspect

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/trajectories/filter"
	"github.com/minibench/mini/trajectories/timeline"
)

// scrollBy is how many lines j, k and the arrows scroll, as in mini-swe-agent's
// inspector.
const scrollBy = 15

// key takes a key press.
func (m *view) key(msg tea.KeyPressMsg) tea.Cmd {
	m.hint = ""
	key := msg.String()
	if key == "ctrl+z" && m.suspend != nil {
		return func() tea.Msg { m.suspend(); return nil }
	}
	if m.asking != nothing {
		return m.typed(msg)
	}
	switch key {
	case "ctrl+c":
		return m.quit()
	case "ctrl+l":
		return tea.ClearScreen
	case "q":
		if !m.help {
			return m.quit()
		}
		m.help = false
	case "?":
		m.help, m.helpTop = !m.help, 0
	default:
		switch {
		case m.help:
			m.helpKey(key)
		case m.reader != nil:
			return m.readerKey(key)
		default:
			return m.listKey(key)
		}
	}
	return nil
}

func (m *view) quit() tea.Cmd {
	m.quitting = true
	return tea.Quit
}

func (m *view) helpKey(key string) {
	switch key {
	case "down", "j", "pgdown", "space":
		m.helpTop += 5
	case "up", "k", "pgup":
		m.helpTop -= 5
	default:
		m.help = false
	}
	m.helpTop = max(0, min(m.helpTop, len(helpLines())-m.height+1))
}

func (m *view) listKey(key string) tea.Cmd {
	l := m.list
	page := max(1, m.listRoom()-1)
	before := l.cursor
	defer func() { l.moved = l.moved || l.cursor != before }()
	switch key {
	case "down", "j":
		l.cursor++
	case "up", "k":
		l.cursor--
	case "pgdown", "space":
		l.cursor += page
	case "pgup":
		l.cursor -= page
	case "home", "0":
		l.cursor = 0
	case "end", "$", "G", "shift+g":
		l.cursor = len(l.visible) - 1
	case "enter", "right", "l":
		if it := l.current(); it != nil {
			return m.open(it)
		}
	case "s":
		l.sortNext()
	case "S", "shift+s":
		l.sorting.Desc = !l.sorting.Desc
		l.arrange()
	case "a":
		l.all = !l.all
		l.arrange()
	case "f":
		return m.ask(aFilter, "filter: ", l.line)
	case "/":
		return m.ask(aText, "search all: ", l.filter.Text)
	case "R", "shift+r":
		return m.walk()
	case "E", "shift+e", "e":
		if it := l.current(); it != nil {
			return m.pageAll(it)
		}
	case "!":
		if len(l.notes) > 0 {
			m.say(true, "%s", l.notes[0])
		}
	case "esc":
		return m.filter(filter.Filter{}, "")
	}
	l.cursor = max(0, min(l.cursor, len(l.visible)-1))
	return nil
}

// sortNext sorts by the next column, numbers with the most first.
func (l *list) sortNext() {
	all := slices.DeleteFunc(SortFields(), func(f Field) bool { return (f == "run" || f == "model") && l.wide[f] == 0 })
	l.sorting.By = all[(max(0, slices.Index(all, l.sorting.By))+1)%len(all)]
	_, _, l.sorting.Desc = l.sorting.By.number(&Item{})
	l.arrange()
}

func (m *view) readerKey(key string) tea.Cmd {
	r := m.reader
	switch key {
	case "esc", "backspace":
		if r.sight == theSteps {
			m.reader = nil
		} else {
			r.turn(r.page)
		}
		return nil
	case "L", "shift+l":
		return m.neighbour(1)
	case "H", "shift+h":
		return m.neighbour(-1)
	case "R", "shift+r":
		return m.read(r.item)
	}
	if r.t == nil || r.scrollKey(key) {
		return nil
	}
	switch key {
	case "right", "l":
		r.turn(r.page + 1)
	case "left", "h":
		r.turn(r.page - 1)
	case "0":
		r.turn(0)
	case "$":
		r.turn(len(r.pages) - 1)
	case "r":
		r.reasoning = !r.reasoning
		m.reasoning = r.reasoning
		r.layout()
		m.say(false, "%s", map[bool]string{true: "reasoning is shown", false: "reasoning is hidden"}[r.reasoning])
	case "o":
		r.whole = !r.whole
		r.layout()
		m.say(false, "%s", map[bool]string{true: "outputs are shown whole", false: "long outputs are folded"}[r.whole])
	case "d":
		m.see(thePatch, patchOf(r.t))
	case "t":
		if m.see(theLog, []*timeline.Item{note("reading the log ...")}) {
			t := r.t
			return m.do(func() tea.Msg { return logged{t.Item, testLog(t)} })
		}
	case "x":
		m.nextFailed(1)
	case "X", "shift+x":
		m.nextFailed(-1)
	case "g":
		return m.ask(aStep, "step: ", "")
	case "/":
		return m.ask(aSearch, "search: ", r.text)
	case "n":
		m.seek(1)
	case "N", "shift+n":
		m.seek(-1)
	case "F", "shift+f":
		r.follow = !r.follow
		if r.follow {
			r.turn(len(r.pages) - 1)
		}
		m.say(false, "%s", map[bool]string{true: "following what is appended", false: "not following"}[r.follow])
	case "e":
		return m.page(r)
	case "E", "shift+e":
		return m.pageAll(r.item)
	}
	return nil
}

// scrollKey says whether the key scrolls.
func (r *reader) scrollKey(key string) bool {
	line, page := min(scrollBy, r.height), max(1, r.height-1)
	by, ok := map[string]int{
		"down": line, "j": line, "up": -line, "k": -line, "pgdown": page, "space": page, "pgup": -page,
		"ctrl+e": 1, "shift+down": 1, "ctrl+y": -1, "shift+up": -1,
		"home": -len(r.lines), "end": len(r.lines), "G": len(r.lines), "shift+g": len(r.lines),
	}[key]
	if ok {
		r.scroll(by)
	}
	return ok
}

// see shows the patch or the log; the same key goes back. It says whether it is
// shown.
func (m *view) see(what sight, items []*timeline.Item) bool {
	r := m.reader
	if r.sight == what {
		r.turn(r.page)
		return false
	}
	r.sight, r.extra = what, items
	r.show()
	return true
}

func (m *view) nextFailed(by int) {
	if !m.reader.nextFailed(by) {
		m.say(false, "no %s step with an error", map[int]string{1: "later", -1: "earlier"}[by])
	}
}

// neighbour reads the next trajectory of the list, or the one before.
func (m *view) neighbour(by int) tea.Cmd {
	l := m.list
	i := slices.IndexFunc(l.visible, func(it *Item) bool { return it.key() == m.reader.item.key() })
	if i < 0 || i+by < 0 || i+by >= len(l.visible) {
		m.say(false, "no %s trajectory", map[int]string{1: "next", -1: "previous"}[by])
		return nil
	}
	l.cursor = i + by
	return m.open(l.visible[l.cursor])
}
