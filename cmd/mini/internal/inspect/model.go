package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
)

// asking is what a line is typed for.
type asking int

const (
	nothing asking = iota
	aFilter
	aSearch
	aStep
)

// view is the screen: the list, and the trajectory that is read in front of it.
// Update does no input or output: what a key leads to is a command of the works.
type view struct {
	works     *works
	suspend   func()
	list      *list
	reader    *reader // nil while the list is seen
	reasoning bool

	width, height int
	input         textinput.Model
	asking        asking
	mistake       string // in what is being typed
	hint          string // what the last key led to
	alarm         bool   // it went wrong
	help          bool
	helpTop       int
	ticks         int
	begun         bool // the only trajectory was opened by itself
	quitting      bool
	colours       bool         // in what a pager is given
	busy          *atomic.Bool // a pager has the screen
}

// Init implements tea.Model.
func (m *view) Init() tea.Cmd {
	m.list.walking = true
	cmds := []tea.Cmd{m.works.walk(), m.works.tick()}
	if r := m.reader; r != nil && r.t == nil && r.failed == nil { // the screen was left while it was read
		cmds = append(cmds, m.works.open(r.item, false))
	}
	m.list.search.done = 0 // one that was going on begins anew when all is known
	return tea.Batch(cmds...)
}

// Update implements tea.Model.
func (m *view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		if m.asking != nothing {
			return m, m.typed(msg)
		}
	case found:
		m.list.take(Batch(msg))
	case walked:
		m.list.walking, m.list.failed = false, msg.err
		if len(m.list.items) == 0 && !m.list.live { // there is nothing to look at
			return m, m.quit()
		}
		if s := &m.list.search; s.running && s.done == 0 { // it was asked for from the start
			return m, m.search(s.text)
		}
		return m, m.begin()
	case opened:
		m.opened(msg)
	case logged:
		if r := m.reader; r != nil && r.item == msg.item && r.sight == theLog {
			r.sections = msg.sections
			r.layout()
		}
	case searched:
		m.searched(msg)
	case seenAt:
		m.seen(msg)
	case changed:
		if r := m.reader; r != nil && r.item == msg.item && msg.yes {
			return m, m.works.open(r.item, true)
		}
	case ticked:
		return m, m.tick()
	case paged:
		if msg.err != nil {
			m.say(true, "%s", msg.err)
		}
	}
	return m, nil
}

func (m *view) say(alarm bool, format string, args ...any) {
	m.hint, m.alarm = oneLine(fmt.Sprintf(format, args...)), alarm
}

// begin reads a source of one trajectory as soon as it is known.
func (m *view) begin() tea.Cmd {
	if m.begun || m.list.walking || m.reader != nil || len(m.list.visible) != 1 || !m.works.source.Single() {
		return nil
	}
	m.begun = true
	return m.open(m.list.visible[0])
}

// open begins to read.
func (m *view) open(it *Item) tea.Cmd {
	before := m.reader
	m.list.moved = true
	m.reader = &reader{item: it, reasoning: m.reasoning}
	r := m.reader
	if s := m.list.search; s.match != nil {
		r.text, r.match = s.text, s.match
	}
	if before != nil && before.match != nil {
		r.text, r.match, r.reasoning = before.text, before.match, before.reasoning
	}
	return m.works.open(it, false)
}

func (m *view) opened(msg opened) {
	r := m.reader
	if r == nil || r.item.key() != msg.item.key() {
		return // it was left before it was read
	}
	if msg.err != nil {
		if r.t == nil || !msg.again {
			r.failed = msg.err
		}
		m.say(true, "%s", msg.err)
		return
	}
	if it := m.list.items[msg.item.key()]; it != nil {
		r.item, msg.t.Item = it, it
	}
	r.take(msg.t, m.look(), m.room())
}

// tick looks once a second at what may have grown, and every other second for
// what is new in a run at work.
func (m *view) tick() tea.Cmd {
	m.ticks++
	cmds := []tea.Cmd{m.works.tick()}
	if r := m.reader; r != nil && r.t != nil && !r.t.ended && (r.follow || r.last() || r.sight != steps) {
		cmds = append(cmds, m.works.look(r.t))
	}
	if m.list.live && !m.list.walking && m.ticks%2 == 0 {
		m.list.walking = true
		cmds = append(cmds, m.works.walk())
	}
	return tea.Batch(cmds...)
}

// search begins to look for a text in all that the list has; none ends that.
func (m *view) search(text string) tea.Cmd {
	s := &m.list.search
	s.stop()
	number := s.number + 1
	m.list.moved = m.list.moved && text == "" // it begins at the first that has it
	*s = search{text: text, match: newMatcher(text), number: number, hits: map[string]int{}, stop: func() {}}
	if s.match == nil {
		m.list.arrange()
		return nil
	}
	items := m.list.sought()
	s.running, s.total = true, len(items)
	var cmd tea.Cmd
	cmd, s.stop = m.works.search(number, items, s.match)
	m.list.arrange()
	return cmd
}

func (m *view) searched(msg searched) {
	s := &m.list.search
	if msg.number != s.number {
		return
	}
	for key, n := range msg.hits {
		s.hits[key] = n
	}
	s.done, s.failed = max(s.done, msg.done), max(s.failed, msg.failed)
	s.running = s.running && msg.done < msg.total
	m.list.arrange()
	if !s.running && len(m.list.visible) == 0 {
		m.say(true, "nothing has %q", s.text)
	}
}

// stopSearch leaves what was found so far.
func (m *view) stopSearch() {
	m.list.search.stop()
	m.list.search.running = false
	m.say(false, "stopped: %d of %d were searched", m.list.search.done, m.list.search.total)
}

// seek looks for the next match in what is read.
func (m *view) seek(by int) tea.Cmd {
	r := m.reader
	if r.match == nil {
		m.say(true, "nothing is searched for; / does that")
		return nil
	}
	m.say(false, "searching for %q ...", r.text)
	return m.works.find(r.seen(), r.match, r.from(by, m.room()), by, m.where())
}

// sought is where a search was begun: what it finds is of no use elsewhere.
type sought struct {
	t       *Trajectory
	sight   sight
	section *Section // the first of the patch or log
}

func (m *view) where() sought {
	r := m.reader
	p := sought{t: r.t, sight: r.sight}
	if r.sight != steps && len(r.sections) > 0 {
		p.section = r.sections[0]
	}
	return p
}

func (m *view) seen(msg seenAt) {
	r := m.reader
	if r == nil || r.t == nil || m.where() != msg.of {
		return
	}
	if !msg.ok {
		what := map[sight]string{steps: "this trajectory", thePatch: "the patch", theLog: "this log"}[r.sight]
		m.say(true, "%q is not in %s", r.text, what)
		return
	}
	m.say(false, "%q", r.text)
	r.reach(msg.at, m.room(), m.look())
}

// ask opens the line at the bottom.
func (m *view) ask(what asking, prompt, value string) tea.Cmd {
	in := textinput.New()
	in.Prompt = prompt
	in.SetVirtualCursor(false)
	in.KeyMap.Paste.SetEnabled(false) // it would run another program; the terminal pastes
	in.ShowSuggestions = what == aFilter
	in.CharLimit = 500
	in.SetWidth(max(1, m.width-widthOf(prompt)-2))
	in.SetValue(value)
	m.input, m.asking, m.mistake = in, what, ""
	return m.input.Focus()
}

// typed takes a key for the line.
func (m *view) typed(msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyPressMsg); ok {
		switch key.String() {
		case "enter":
			return m.answered()
		case "esc", "ctrl+c":
			m.asking, m.mistake = nothing, ""
			return nil
		case "backspace":
			if m.input.Value() == "" {
				m.asking, m.mistake = nothing, ""
				return nil
			}
		}
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	m.mistake = ""
	switch m.asking {
	case aFilter:
		m.input.SetSuggestions(Complete(m.input.Value(), m.list.visible))
		if _, err := ParseFilter(m.input.Value()); err != nil {
			m.mistake = err.Error()
		}
	case aStep:
		if _, err := strconv.Atoi(m.input.Value()); err != nil && m.input.Value() != "" {
			m.mistake = fmt.Sprintf("a number from 0 to %d", m.reader.t.Steps)
		}
	}
	return cmd
}

// answered does what was asked for.
func (m *view) answered() tea.Cmd {
	value := m.input.Value()
	what := m.asking
	switch what {
	case aFilter:
		f, err := ParseFilter(value)
		if err != nil {
			m.mistake = err.Error()
			return nil
		}
		m.asking = nothing
		return m.filter(f, value)
	case aSearch:
		m.asking = nothing
		if m.reader == nil {
			return m.search(value)
		}
		m.reader.text, m.reader.match, m.reader.hit = value, newMatcher(value), nil
		if value == "" {
			return nil
		}
		return m.seek(1)
	case aStep:
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			m.mistake = fmt.Sprintf("a number from 0 to %d", m.reader.t.Steps)
			return nil
		}
		m.asking = nothing
		m.reader.turn(n)
		if n > m.reader.t.Steps || n < 0 {
			m.say(true, "there is no step %d: it has %d", n, m.reader.t.Steps)
		}
	}
	return nil
}

// filter shows what meets conditions. A text in them is searched for.
func (m *view) filter(f Filter, line string) tea.Cmd {
	had := m.list.filter.Text
	m.list.filter, m.list.line = f, strings.TrimSpace(line)
	m.list.arrange()
	if f.Text != "" || had != "" {
		return m.search(f.Text)
	}
	return nil
}
