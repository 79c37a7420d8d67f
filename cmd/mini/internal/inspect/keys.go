package inspect

import (
	"slices"

	tea "charm.land/bubbletea/v2"
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
		if m.list.search.running {
			m.stopSearch()
			return nil
		}
		return m.quit()
	case "ctrl+l":
		return tea.ClearScreen
	case "q":
		if m.help {
			m.help = false
			return nil
		}
		return m.quit()
	case "?":
		m.help, m.helpTop = !m.help, 0
		return nil
	}
	switch {
	case m.help:
		return m.helpKey(key)
	case m.reader != nil:
		return m.readerKey(key)
	}
	return m.listKey(key)
}

func (m *view) quit() tea.Cmd {
	m.quitting = true
	m.list.search.stop()
	return tea.Quit
}

func (m *view) helpKey(key string) tea.Cmd {
	switch key {
	case "down", "j", "pgdown", "space":
		m.helpTop += 5
	case "up", "k", "pgup":
		m.helpTop -= 5
	default:
		m.help = false
	}
	m.helpTop = max(0, min(m.helpTop, len(helpLines())-m.height+1))
	return nil
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
	case "s", "S", "shift+s":
		if key == "s" {
			all := SortFields()
			all = slices.DeleteFunc(all, func(f Field) bool { return (f == FieldRun || f == FieldModel) && l.several[f] == 0 })
			l.sorting = Sorting{By: all[(slices.Index(all, l.sorting.By)+1)%len(all)]}
			l.sorting.Desc = l.sorting.By.numeric() // the most first
		} else {
			l.sorting.Desc = !l.sorting.Desc
		}
		l.arrange()
	case "a":
		l.all = !l.all
		l.arrange()
	case "f":
		return m.ask(aFilter, "filter: ", l.line)
	case "/":
		return m.ask(aSearch, "search all: ", l.search.text)
	case "n":
		l.cursor++
	case "N", "shift+n":
		l.cursor--
	case "R", "shift+r":
		if !l.walking {
			l.walking = true
			return m.works.walk()
		}
	case "E", "shift+e", "e":
		if it := l.current(); it != nil {
			return m.pageAll(it, m.reasoning)
		}
	case "!":
		if len(l.notes) > 0 {
			m.say(true, "%s", l.notes[0])
		}
	case "esc":
		return m.escape()
	}
	l.cursor = max(0, min(l.cursor, len(l.visible)-1))
	return nil
}

// escape undoes one thing: a search that goes on, a search, a filter.
func (m *view) escape() tea.Cmd {
	l := m.list
	switch {
	case l.search.running:
		m.stopSearch()
		return nil
	case l.search.match != nil:
		l.filter.Text = ""
		return m.search("")
	case l.line != "":
		return m.filter(Filter{}, "")
	}
	return nil
}

func (m *view) readerKey(key string) tea.Cmd {
	r := m.reader
	switch key {
	case "esc", "backspace":
		if r.sight != steps {
			r.sight = steps
			r.show()
			return nil
		}
		m.reader = nil
		return nil
	case "L", "shift+l":
		return m.neighbour(1)
	case "H", "shift+h":
		return m.neighbour(-1)
	case "R", "shift+r":
		return m.works.open(r.item, true)
	}
	if r.t == nil || r.body == nil {
		return nil
	}
	if m.scrollKey(key) {
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
		r.turn(len(r.t.Pages) - 1)
	case "r":
		r.reasoning = !r.reasoning
		m.reasoning = r.reasoning
		r.layout()
		r.at = r.body.clamp(r.at, m.room(), m.look())
		m.say(false, "%s", map[bool]string{true: "reasoning is shown", false: "reasoning is hidden"}[r.reasoning])
	case "d":
		return m.see(thePatch)
	case "t":
		return m.see(theLog)
	case "x":
		m.nextError(1)
	case "X", "shift+x":
		m.nextError(-1)
	case "g":
		return m.ask(aStep, "step: ", "")
	case "/":
		return m.ask(aSearch, "search: ", r.text)
	case "n":
		return m.seek(1)
	case "N", "shift+n":
		return m.seek(-1)
	case "F", "shift+f":
		r.follow = !r.follow
		if r.follow {
			r.turn(len(r.t.Pages) - 1)
		}
		m.say(false, "%s", map[bool]string{true: "following what is appended", false: "not following"}[r.follow])
	case "b":
		return m.branch()
	case "e":
		return m.page(r)
	case "E", "shift+e":
		return m.pageAll(r.item, true)
	}
	return nil
}

// scrollKey says whether the key scrolls.
func (m *view) scrollKey(key string) bool {
	r, room, l := m.reader, m.room(), m.look()
	var by int
	switch key {
	case "down", "j":
		by = min(scrollBy, room)
	case "up", "k":
		by = -min(scrollBy, room)
	case "pgdown", "space":
		by = max(1, room-1)
	case "pgup":
		by = -max(1, room-1)
	case "ctrl+e", "shift+down":
		by = 1
	case "ctrl+y", "shift+up":
		by = -1
	case "home":
		r.at = place{}
		return true
	case "end", "G", "shift+g":
		r.at = r.body.end(room, l)
		return true
	default:
		return false
	}
	r.at = r.body.scroll(r.at, by, room, l)
	return true
}

// see shows the patch or the log; the same key goes back.
func (m *view) see(what sight) tea.Cmd {
	r := m.reader
	if r.sight == what {
		r.sight = steps
		r.show()
		return nil
	}
	r.sight = what
	if what == thePatch {
		r.sections = patchOf(r.t)
		r.show()
		return nil
	}
	page := &Page{}
	page.add(Note, "", "reading the log ...")
	r.sections = page.Sections
	r.show()
	return m.works.log(r.t)
}

func (m *view) nextError(by int) {
	if to := m.reader.t.failed(m.reader.page, by); to >= 0 {
		m.reader.turn(to)
		return
	}
	m.say(false, "no %s step with an error", map[int]string{1: "later", -1: "earlier"}[by])
}

// neighbour reads the next trajectory of the list, or the one before.
func (m *view) neighbour(by int) tea.Cmd {
	l := m.list
	i := slices.IndexFunc(l.visible, func(it *Item) bool { return it.key() == m.reader.item.key() })
	if i < 0 || i+by < 0 || i+by >= len(l.visible) {
		m.say(false, "no %s trajectory", map[int]string{1: "next", -1: "previous"}[by])
		return nil
	}
	l.cursor, l.moved = i+by, true
	return m.open(l.visible[l.cursor])
}

func (m *view) branch() tea.Cmd {
	step := m.reader.current().Step
	if m.reader.current().Name == theEnd {
		step = m.reader.t.Steps
	}
	command, err := branchCommand(m.reader.t, step)
	if err != nil {
		m.say(true, "%s", err)
		return nil
	}
	m.say(false, "copied: %s", command)
	return tea.SetClipboard(command)
}
