package browser

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// scrollBy is the number of lines that j, k and the up and down keys scroll, but at most a screen,
// as in mini-swe-agent's inspector.
const scrollBy = 15

// handleKey handles a key.
func (m *browser) handleKey(msg tea.KeyPressMsg) tea.Cmd {
	m.hint = ""
	key := msg.String()
	if key == "ctrl+z" && m.suspend != nil {
		return func() tea.Msg { m.suspend(); return nil }
	}
	if m.prompt != noPrompt {
		return m.handlePromptKey(msg)
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
			m.handleHelpKey(key)
		case m.reader != nil:
			return m.handleReaderKey(key)
		default:
			return m.handleListKey(key)
		}
	}
	return nil
}

func (m *browser) quit() tea.Cmd {
	m.quitting = true
	return tea.Quit
}

func (m *browser) handleHelpKey(key string) {
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

func (m *browser) handleListKey(key string) tea.Cmd {
	l := m.list
	page := max(1, m.listHeight()-1)
	oldCursor := l.cursor
	defer func() { l.cursorMoved = l.cursorMoved || l.cursor != oldCursor }()
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
		if entry := l.current(); entry != nil {
			return m.open(entry)
		}
	case "s":
		l.sortNext()
	case "S", "shift+s":
		l.order.Desc = !l.order.Desc
		l.update()
	case "a":
		l.allAttempts = !l.allAttempts
		l.update()
	case "f":
		return m.openPrompt(filterPrompt, "filter: ", l.filterText)
	case "/":
		return m.openPrompt(textPrompt, "search all: ", l.filter.Text)
	case "R", "shift+r":
		return m.walk()
	case "E", "shift+e", "e":
		if entry := l.current(); entry != nil {
			return m.openAllInPager(entry)
		}
	case "!":
		if len(l.problems) > 0 {
			m.setHint(true, "%s", l.problems[0])
		}
	case "esc":
		return m.applyFilter(query.Filter{}, "")
	}
	l.cursor = max(0, min(l.cursor, len(l.visible)-1))
	return nil
}

// sortNext sorts by the next column: numbers in descending order, texts in ascending order.
func (l *list) sortNext() {
	isHidden := func(f SortField) bool { return (f == "run" || f == "model") && l.columnWidths[f] == 0 }
	fields := slices.DeleteFunc(SortFields(), isHidden)
	l.order.By = fields[(max(0, slices.Index(fields, l.order.By))+1)%len(fields)]
	_, _, l.order.Desc = l.order.By.numberValue(&Entry{})
	l.update()
}

func (m *browser) handleReaderKey(key string) tea.Cmd {
	r := m.reader
	switch key {
	case "esc", "backspace":
		if r.mode == modeSteps {
			m.reader = nil
		} else {
			r.gotoPage(r.page)
		}
		return nil
	case "L", "shift+l":
		return m.openNeighbour(1)
	case "H", "shift+h":
		return m.openNeighbour(-1)
	case "R", "shift+r":
		return m.readTrajectory(r.entry)
	}
	if r.trajectory == nil || r.handleScrollKey(key) {
		return nil
	}
	switch key {
	case "right", "l":
		r.gotoPage(r.page + 1)
	case "left", "h":
		r.gotoPage(r.page - 1)
	case "0":
		r.gotoPage(0)
	case "$":
		r.gotoPage(len(r.pages) - 1)
	case "r":
		r.reasoning = !r.reasoning
		m.reasoning = r.reasoning
		r.layout()
		m.setHint(false, "%s", map[bool]string{true: "reasoning is shown", false: "reasoning is hidden"}[r.reasoning])
	case "o":
		r.unfolded = !r.unfolded
		r.layout()
		m.setHint(false, "%s", map[bool]string{true: "outputs are unfolded", false: "long outputs are folded"}[r.unfolded])
	case "d":
		m.showExtra(modePatch, patchItems(r.trajectory))
	case "t":
		if m.showExtra(modeLog, []*timeline.Item{noteItem("reading the log ...")}) {
			t := r.trajectory
			return func() tea.Msg { return logMsg{t.Entry, testLog(t)} }
		}
	case "x":
		m.gotoFailed(1)
	case "X", "shift+x":
		m.gotoFailed(-1)
	case "g":
		return m.openPrompt(stepPrompt, "step: ", "")
	case "/":
		return m.openPrompt(searchPrompt, "search: ", r.searchText)
	case "n":
		m.search(1)
	case "N", "shift+n":
		m.search(-1)
	case "F", "shift+f":
		r.follow = !r.follow
		if r.follow {
			r.gotoPage(len(r.pages) - 1)
		}
		m.setHint(false, "%s", map[bool]string{true: "following the attempt", false: "not following"}[r.follow])
	case "e":
		return m.openStepInPager(r)
	case "E", "shift+e":
		return m.openAllInPager(r.entry)
	}
	return nil
}

// handleScrollKey scrolls the page. It reports whether the key is a scroll key.
func (r *reader) handleScrollKey(key string) bool {
	line, page := min(scrollBy, r.height), max(1, r.height-1)
	delta, ok := map[string]int{
		"down": line, "j": line, "up": -line, "k": -line, "pgdown": page, "space": page, "pgup": -page,
		"ctrl+e": 1, "shift+down": 1, "ctrl+y": -1, "shift+up": -1,
		"home": -len(r.lines), "end": len(r.lines), "G": len(r.lines), "shift+g": len(r.lines),
	}[key]
	if ok {
		r.scroll(delta)
	}
	return ok
}

// showExtra shows the patch or the log, depending on mode. If that is already shown, it returns
// to the steps. It reports whether the patch or log is shown now.
func (m *browser) showExtra(mode readerMode, items []*timeline.Item) bool {
	r := m.reader
	if r.mode == mode {
		r.gotoPage(r.page)
		return false
	}
	r.mode, r.extraItems = mode, items
	r.reset()
	return true
}

func (m *browser) gotoFailed(direction int) {
	if !m.reader.gotoFailed(direction) {
		m.setHint(false, "no %s step with an error", map[int]string{1: "later", -1: "earlier"}[direction])
	}
}

// openNeighbour opens the next or previous trajectory of the list.
func (m *browser) openNeighbour(direction int) tea.Cmd {
	l := m.list
	i := slices.IndexFunc(l.visible, func(e *Entry) bool { return e.key() == m.reader.entry.key() })
	if i < 0 || i+direction < 0 || i+direction >= len(l.visible) {
		m.setHint(false, "no %s trajectory", map[int]string{1: "next", -1: "previous"}[direction])
		return nil
	}
	l.cursor = i + direction
	return m.open(l.visible[l.cursor])
}
