package browser

import (
	"fmt"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// scrollBy is the number of lines that j, k and the up and down keys scroll, but at most a screen,
// as in mini-swe-agent's inspector.
const scrollBy = 15

// command is what a key does. The help lists all commands with a description, and the line at the
// bottom those with a hint.
type command struct {
	key.Binding
	hint string
	do   func(*browser) tea.Cmd // nil if the list or the page handles the key
}

// on returns a command for keys, which are separated by spaces. label names the keys for the user.
func on(keys, label, description, hint string, do func(*browser) tea.Cmd) command {
	b := bind(keys)
	b.SetHelp(label, description)
	return command{b, hint, do}
}

// bind returns a binding of keys, which are separated by spaces.
func bind(keys string) key.Binding { return key.NewBinding(key.WithKeys(strings.Fields(keys)...)) }

// inList returns a function that changes the list.
func inList(change func(*list)) func(*browser) tea.Cmd {
	return func(m *browser) tea.Cmd { change(m.list); return nil }
}

// inReader returns a function that changes the page, once the trajectory has been read.
func inReader(change func(*browser, *reader)) func(*browser) tea.Cmd {
	return func(m *browser) tea.Cmd {
		if m.reader.trajectory != nil {
			change(m, m.reader)
		}
		return nil
	}
}

// listCommands are the commands of the list.
func listCommands() []command {
	return []command{
		on("enter right l", "Enter l", "open the trajectory", "read", (*browser).openCurrent),
		on("", "j k ↓ ↑ PgUp PgDn 0 $", "move", "", nil),
		on("/", "/", "search all trajectories", "search", (*browser).askText),
		on("f", "f", `filter, such as: status:limit verdict:unresolved cost>1`, "filter", (*browser).askFilter),
		on("esc", "Esc", "remove the filter", "", func(m *browser) tea.Cmd { return m.setFilter(query.Filter{}, "") }),
		on("s", "s", "sort by the next column", "sort", inList((*list).sortNext)),
		on("S", "S", "reverse the order", "", inList(func(l *list) { l.SortOrder.Desc = !l.SortOrder.Desc; l.update() })),
		on("a", "a", "show or hide superseded attempts", "attempts", inList(func(l *list) { l.AllAttempts = !l.AllAttempts; l.update() })),
		on("e E", "e E", "open the trajectory in $PAGER", "", func(m *browser) tea.Cmd { return m.openAllInPager(m.list.current()) }),
		on("R", "R", "reload", "", (*browser).walk),
	}
}

// readerCommands are the commands of an open trajectory.
func readerCommands() []command {
	return []command{
		on("right l", "l →", "next step", "step", inReader(func(_ *browser, r *reader) { r.show(r.page+1, nil) })),
		on("left h", "h ←", "previous step", "", inReader(func(_ *browser, r *reader) { r.show(r.page-1, nil) })),
		on("0", "0", "first page: the prompts", "", inReader(func(_ *browser, r *reader) { r.show(0, nil) })),
		on("$", "$", "last page", "", inReader(func(_ *browser, r *reader) { r.show(len(r.pages), nil) })),
		on("g", "g", "go to a step", "", inReader((*browser).askStep)),
		on("down j", "j ↓", "scroll 15 lines", "scroll", inReader(func(_ *browser, r *reader) { r.view.ScrollDown(min(scrollBy, r.view.Height())) })),
		on("up k", "k ↑", "scroll 15 lines back", "", inReader(func(_ *browser, r *reader) { r.view.ScrollUp(min(scrollBy, r.view.Height())) })),
		on("", "PgDn PgUp Space", "scroll a screen", "", nil),
		on("", "Ctrl-E Ctrl-Y", "scroll a line", "", nil),
		on("home", "Home", "scroll to the top", "", inReader(func(_ *browser, r *reader) { r.view.GotoTop() })),
		on("end G", "End", "scroll to the end", "", inReader(func(_ *browser, r *reader) { r.view.GotoBottom() })),
		on("d", "d", "show the patch", "patch", inReader(func(_ *browser, r *reader) { r.toggle(patchPage, patchItems) })),
		on("t", "t", "show the test log", "log", inReader(func(_ *browser, r *reader) { r.toggle(logPage, testLog) })),
		on("x", "x", "next step with an error", "error", inReader(func(m *browser, r *reader) { m.findFailed(r, 1) })),
		on("X", "X", "previous step with an error", "", inReader(func(m *browser, r *reader) { m.findFailed(r, -1) })),
		on("r", "r", "show or hide reasoning", "reasoning", inReader(func(m *browser, r *reader) { r.reasoning = !r.reasoning; m.list.Reasoning = r.reasoning; r.layout() })),
		on("/", "/", "search", "search", inReader((*browser).askSearch)),
		on("n", "n", "next match", "", inReader(func(m *browser, r *reader) { m.search(r, 1) })),
		on("N", "N", "previous match", "", inReader(func(m *browser, r *reader) { m.search(r, -1) })),
		on("o", "o", "unfold or fold long outputs", "", inReader(func(_ *browser, r *reader) { r.unfolded = !r.unfolded; r.layout() })),
		on("L", "L", "next trajectory", "", func(m *browser) tea.Cmd { return m.openNeighbour(1) }),
		on("H", "H", "previous trajectory", "", func(m *browser) tea.Cmd { return m.openNeighbour(-1) }),
		on("e", "e", "open the step in $PAGER", "", (*browser).openStepInPager),
		on("E", "E", "open the trajectory in $PAGER", "", func(m *browser) tea.Cmd { return m.openAllInPager(m.reader.entry) }),
		on("R", "R", "reload", "", func(m *browser) tea.Cmd { return m.readTrajectory(m.reader.entry, nil) }),
		on("F", "F", "go to the end, and follow a running attempt", "", inReader(func(_ *browser, r *reader) { r.show(len(r.pages), nil); r.view.GotoBottom() })),
		on("esc backspace", "Esc", "back", "back", (*browser).back),
	}
}

// commands are those of the list or of the open trajectory, and after them those of both.
func (m *browser) commands() []command {
	commands := listCommands()
	if m.reader != nil {
		commands = readerCommands()
	}
	return append(commands,
		on("?", "?", "help", "help", (*browser).openHelp),
		on("q ctrl+c", "q", "quit", "quit", func(*browser) tea.Cmd { return tea.Quit }),
	)
}

// handleKey handles a key.
func (m *browser) handleKey(msg tea.KeyPressMsg) tea.Cmd {
	m.message = ""
	switch pressed := msg.String(); {
	case pressed == "ctrl+z" && m.suspend != nil:
		return func() tea.Msg { m.suspend(); return nil }
	case m.submit != nil:
		return m.handlePromptKey(msg)
	case m.help != nil && pressed != "ctrl+c":
		if keys := m.help.KeyMap; key.Matches(msg, keys.Down, keys.Up, keys.PageDown, keys.PageUp) {
			*m.help, _ = m.help.Update(msg)
		} else {
			m.help = nil
		}
		return nil
	}
	for _, c := range m.commands() {
		if key.Matches(msg, c.Binding) && c.do != nil {
			return c.do(m)
		}
	}
	if m.reader != nil {
		m.reader.view, _ = m.reader.view.Update(msg)
		return nil
	}
	old := m.list.table.Cursor()
	m.list.table, _ = m.list.table.Update(msg)
	m.list.setCursor(m.list.table.Cursor())
	m.list.cursorMoved = m.list.cursorMoved || m.list.table.Cursor() != old
	return nil
}

// openHelp shows the keys of the list and of an open trajectory.
func (m *browser) openHelp() tea.Cmd {
	describe := func(commands []command) string {
		var bindings []key.Binding
		for _, c := range commands {
			bindings = append(bindings, key.NewBinding(key.WithKeys(""), key.WithHelp(" "+c.Help().Key, c.Help().Desc)))
		}
		return help.Model{}.FullHelpView([][]key.Binding{bindings})
	}
	view := viewport.New(viewport.WithWidth(m.width), viewport.WithHeight(m.helpHeight()))
	view.KeyMap = viewport.KeyMap{Down: bind("down j"), Up: bind("up k"), PageDown: bind("pgdown space"), PageUp: bind("pgup")}
	view.SetContent(steps.Bold(" The list") + "\n" + describe(listCommands()) + "\n" + steps.Bold(" Reading") + "\n" + describe(readerCommands()) +
		"\n Ctrl-Z suspends, fg returns; q quits. A search ignores case unless it\n contains a capital letter.")
	m.help = &view
	return nil
}

// ask opens the prompt at the bottom. An error of submit keeps it open.
func (m *browser) ask(prompt, value string, submit func(string) (tea.Cmd, error)) {
	m.input, m.submit = textinput.New(), submit
	m.input.Prompt = prompt
	m.input.SetVirtualCursor(false)
	m.input.KeyMap.Paste.SetEnabled(false) // would run a clipboard program; users paste with their terminal
	m.input.CharLimit = 500
	m.input.SetValue(value)
	m.input.CursorEnd()
	m.input.SetWidth(m.inputWidth())
	m.input.Focus()
}

// handlePromptKey handles a key or a paste while the prompt is open.
func (m *browser) handlePromptKey(msg tea.Msg) (cmd tea.Cmd) {
	pressed, _ := msg.(tea.KeyPressMsg)
	switch name := pressed.String(); {
	case name == "enter":
		cmd, err := m.submit(m.input.Value())
		if err != nil {
			m.fail("%s", err)
			return nil
		}
		m.submit = nil
		return cmd
	case name == "esc", name == "ctrl+c", name == "backspace" && m.input.Value() == "":
		m.submit = nil
		return nil
	}
	m.input, cmd = m.input.Update(msg)
	return cmd
}

func (m *browser) askFilter() tea.Cmd {
	m.ask("filter: ", m.list.FilterText, func(typed string) (tea.Cmd, error) {
		f, err := query.Parse(typed)
		if err != nil {
			return nil, err
		}
		return m.setFilter(f, strings.TrimSpace(typed)), nil
	})
	return nil
}

func (m *browser) askText() tea.Cmd {
	m.ask("search all: ", m.list.Filter.Text, func(text string) (tea.Cmd, error) {
		typed := ""
		if text != "" {
			typed = `text:"` + text + `"`
		}
		return m.setFilter(query.Filter{Text: text}, typed), nil
	})
	return nil
}

// setFilter filters the list. If the text of the filter has changed, it walks the source
// again, which searches all trajectories.
func (m *browser) setFilter(f query.Filter, typed string) tea.Cmd {
	l := m.list
	isNewText := f.Text != l.Filter.Text
	if l.Filter, l.FilterText = f, typed; isNewText {
		l.found.entries, l.cursorMoved = nil, false
	}
	if l.update(); isNewText {
		return m.walk()
	}
	return nil
}

func (m *browser) askSearch(r *reader) {
	m.ask("search: ", "", func(text string) (tea.Cmd, error) {
		r.searchText = text
		r.layout()
		if text != "" {
			m.search(r, 1)
		}
		return nil, nil
	})
}

// search goes to the next match in the open trajectory or, if direction is -1, to the previous
// one.
func (m *browser) search(r *reader, direction int) {
	switch {
	case r.searchText == "":
		m.fail("no search text; enter one with /")
	case r.findNext(direction):
		m.say("%q", r.searchText)
	case r.extra != nil:
		m.fail("%q not found in the %s", r.searchText, r.extra.Name)
	default:
		m.fail("%q not found in this trajectory", r.searchText)
	}
}

func (m *browser) askStep(r *reader) {
	m.ask("step: ", "", func(text string) (tea.Cmd, error) {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if replies := r.trajectory.ReplyCount(); err != nil || n < 0 || n > replies {
			return nil, fmt.Errorf("no step %.20q: there are %d", text, replies)
		}
		r.show(n, nil)
		return nil, nil
	})
}

// findFailed goes to the next step with an error or, if direction is -1, to the previous one.
func (m *browser) findFailed(r *reader, direction int) {
	for i := r.page + direction; i >= 0 && i < len(r.pages); i += direction {
		if r.pages[i].Failed {
			r.show(i, nil)
			return
		}
	}
	m.say("no %s step with an error", map[int]string{1: "later", -1: "earlier"}[direction])
}

// toggle shows an extra page or, if it is shown already, returns to the steps.
func (r *reader) toggle(name string, items func(*Entry, *Trajectory) []*timeline.Item) {
	if r.extra != nil && r.extra.Name == name {
		r.show(r.page, nil)
	} else {
		r.show(r.page, &timeline.Step{Name: name, Items: items(r.entry, r.trajectory)})
	}
}

// back returns from the patch or the log to the steps, and from the steps to the list.
func (m *browser) back() tea.Cmd {
	if m.reader.extra != nil {
		m.reader.show(m.reader.page, nil)
	} else {
		m.reader = nil
	}
	return nil
}

func (m *browser) openCurrent() tea.Cmd {
	if e := m.list.current(); e != nil {
		return m.open(e)
	}
	return nil
}

// openNeighbour opens the next trajectory of the list or, if direction is -1, the previous one.
func (m *browser) openNeighbour(direction int) tea.Cmd {
	i := m.list.index(m.reader.entry) + direction
	if i < 0 || i >= len(m.list.visible) {
		m.say("no %s trajectory", map[int]string{1: "next", -1: "previous"}[direction])
		return nil
	}
	m.list.setCursor(i)
	return m.openCurrent()
}

// openStepInPager opens the visible step, patch or log in the user's pager.
func (m *browser) openStepInPager() tea.Cmd {
	r := *m.reader
	if r.trajectory == nil {
		return nil
	}
	r.reasoning = r.reasoning || r.extra != nil
	return m.runPager(r.text([]*timeline.Step{r.step()}, m.list.Colours), nil)
}

// openAllInPager opens a whole trajectory in the user's pager.
func (m *browser) openAllInPager(e *Entry) tea.Cmd {
	if e == nil {
		return nil
	}
	return m.runPager(Options{Path: e.Path, Reasoning: true, Colours: m.list.Colours}.trajectoryText(e))
}

// runPager runs the user's pager on a text, and then redraws the screen.
func (m *browser) runPager(text string, err error) tea.Cmd {
	if err != nil {
		m.fail("%s", err)
		return nil
	}
	return terminal.ExecPager(m.ctx, strings.NewReader(text), m.terminal, func(err error) tea.Msg { return pagerDoneMsg{err} })
}
