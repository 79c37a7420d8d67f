package browser

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// promptKind says what the prompt at the bottom is for.
type promptKind int

const (
	noPrompt promptKind = iota
	filterPrompt
	textPrompt // text to search all trajectories for
	searchPrompt
	stepPrompt
)

// browser is the Bubble Tea model: the list, and the open trajectory in front of it. Files are
// read by commands.
type browser struct {
	source    *Source
	ctx       context.Context //nolint:containedctx // ends when the terminal is released
	send      func(tea.Msg)
	walkMu    sync.Mutex // held during a walk
	suspend   func()
	list      *list
	reader    *reader // nil while the list is shown
	reasoning bool

	width, height int
	input         textinput.Model
	prompt        promptKind
	promptError   string // error in the prompt's input
	hint          string // the result of the last key
	hintIsError   bool   // hint is an error
	help          bool
	helpTop       int
	ticks         int
	autoOpened    bool // the only trajectory was opened automatically
	quitting      bool
	pagerColours  bool               // use colours in the pager
	stopWalk      context.CancelFunc // nil before the first walk
	walkNumber    int                // number of the current walk
}

// Messages of commands.
type (
	batchMsg struct {
		Batch
		number int
	}
	walkDoneMsg struct {
		err    error
		number int
	}
	openedMsg struct {
		entry      *Entry
		trajectory *Trajectory
		err        error
	}
	logMsg struct {
		entry *Entry
		items []*timeline.Item
	}
	tickMsg      struct{}
	pagerDoneMsg struct{ err error }
)

// Init implements tea.Model. It resumes a read interrupted by Ctrl-Z.
func (m *browser) Init() tea.Cmd {
	cmds := []tea.Cmd{m.walk(), m.tick()}
	if r := m.reader; r != nil && r.trajectory == nil && r.err == nil {
		cmds = append(cmds, m.read(r.entry))
	}
	return tea.Batch(cmds...)
}

// Update implements tea.Model.
func (m *browser) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return m, m.handleKey(msg)
	case tea.PasteMsg:
		if m.prompt != noPrompt {
			return m, m.handlePromptKey(msg)
		}
	case batchMsg:
		if msg.number == m.walkNumber {
			m.list.add(msg.Batch)
		}
	case walkDoneMsg:
		if msg.number != m.walkNumber {
			break
		}
		m.list.walking, m.list.walkError = false, msg.err
		if len(m.list.entries) == 0 && !m.list.running { // nothing to show
			return m, m.quit()
		}
		return m, m.openOnlyEntry()
	case openedMsg:
		m.handleOpened(msg)
	case logMsg:
		if r := m.reader; r != nil && r.entry == msg.entry && r.mode == modeLog {
			r.extraItems = msg.items
			r.layout()
		}
	case tickMsg:
		return m, m.handleTick()
	case pagerDoneMsg:
		if msg.err != nil {
			m.setHint(true, "pager failed: %s; set PAGER to another one", msg.err)
		}
	}
	return m, nil
}

func (m *browser) setHint(alarm bool, format string, args ...any) {
	m.hint, m.hintIsError = steps.OneLine(fmt.Sprintf(format, args...)), alarm
}

// batchInterval is the minimum time between batches.
const batchInterval = 100 * time.Millisecond

// walk walks the source and sends batches. It cancels a running walk.
func (m *browser) walk() tea.Cmd {
	if m.stopWalk != nil {
		m.stopWalk()
	}
	ctx, stop := context.WithCancel(m.ctx)
	m.stopWalk, m.list.walking = stop, true
	m.walkNumber++
	number, filter, source, send := m.walkNumber, m.list.filter, m.source, m.send
	return func() tea.Msg {
		m.walkMu.Lock()
		defer m.walkMu.Unlock()
		defer stop()
		if ctx.Err() != nil { // canceled while waiting
			return nil
		}
		b := batchMsg{number: number}
		var last time.Time
		flush := func() {
			send(b)
			b, last = batchMsg{Batch{Running: b.Running}, number}, time.Now()
		}
		err := source.Walk(ctx, filter, func(next Batch) error {
			b.Entries, b.Notes = append(b.Entries, next.Entries...), append(b.Notes, next.Notes...)
			b.Files, b.Running = next.Files, b.Running || next.Running
			if time.Since(last) >= batchInterval {
				flush()
			}
			return nil
		})
		if ctx.Err() != nil {
			return nil
		}
		flush()
		return walkDoneMsg{err, number}
	}
}

func (m *browser) read(it *Entry) tea.Cmd {
	return func() tea.Msg {
		t, err := Open(it)
		return openedMsg{it, t, err}
	}
}

func (m *browser) tick() tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
			return tickMsg{}
		}
	}
}

// handleTick reloads a growing trajectory every second, and the list of a running run every
// two seconds.
func (m *browser) handleTick() tea.Cmd {
	m.ticks++
	cmds := []tea.Cmd{m.tick()}
	if r := m.reader; r != nil && r.trajectory != nil && r.trajectory.Outcome == nil && (r.follow || r.isLastPage()) {
		current, it := r.trajectory, r.entry
		cmds = append(cmds, func() tea.Msg {
			if !current.HasChanged() {
				return nil
			}
			t, err := Open(it)
			return openedMsg{it, t, err}
		})
	}
	if m.list.running && !m.list.walking && m.ticks%2 == 0 {
		cmds = append(cmds, m.walk())
	}
	return tea.Batch(cmds...)
}

// openOnlyEntry opens the trajectory of a source that has only one.
func (m *browser) openOnlyEntry() tea.Cmd {
	if m.autoOpened || m.reader != nil || len(m.list.visible) != 1 || !m.source.IsSingle() {
		return nil
	}
	m.autoOpened = true
	return m.open(m.list.visible[0])
}

// open opens a trajectory. The search text is kept.
func (m *browser) open(it *Entry) tea.Cmd {
	text := m.list.filter.Text
	if m.reader != nil && m.reader.searchText != "" {
		text = m.reader.searchText
	}
	m.list.cursorMoved = true
	m.reader = &reader{entry: it, reasoning: m.reasoning, searchText: text, match: -1, width: m.width - 1, height: m.readerHeight()}
	return m.read(it)
}

func (m *browser) handleOpened(msg openedMsg) {
	r := m.reader
	if r == nil || r.entry.key() != msg.entry.key() {
		return // closed before it was read
	}
	if msg.err != nil {
		if r.trajectory == nil {
			r.err = msg.err
		}
		m.setHint(true, "%s", msg.err)
		return
	}
	if it := m.list.entries[msg.entry.key()]; it != nil {
		r.entry, msg.trajectory.Entry = it, it
	}
	r.setTrajectory(msg.trajectory)
}

// openPrompt opens the prompt at the bottom.
func (m *browser) openPrompt(kind promptKind, prompt, value string) tea.Cmd {
	in := textinput.New()
	in.Prompt = prompt
	in.SetVirtualCursor(false)
	in.KeyMap.Paste.SetEnabled(false) // it would run a clipboard program; terminals paste
	in.CharLimit = 500
	in.SetWidth(max(1, m.width-terminal.Width(prompt)-2))
	in.SetValue(value)
	in.CursorEnd()
	m.input, m.prompt, m.promptError = in, kind, ""
	return m.input.Focus()
}

// handlePromptKey handles a key while the prompt is open.
func (m *browser) handlePromptKey(msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyPressMsg); ok {
		switch pressed := key.String(); {
		case pressed == "enter":
			return m.submitPrompt()
		case pressed == "esc", pressed == "ctrl+c", pressed == "backspace" && m.input.Value() == "":
			m.prompt, m.promptError = noPrompt, ""
			return nil
		}
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	m.promptError = ""
	return cmd
}

// submitPrompt executes the prompt.
func (m *browser) submitPrompt() tea.Cmd {
	value := m.input.Value()
	switch m.prompt {
	case filterPrompt:
		f, err := query.Parse(value)
		if err != nil {
			m.promptError = err.Error()
			return nil
		}
		m.prompt = noPrompt
		return m.applyFilter(f, value)
	case textPrompt:
		m.prompt = noPrompt
		if value == "" {
			return m.applyFilter(query.Filter{}, "")
		}
		return m.applyFilter(query.Filter{Text: value}, `text:"`+value+`"`)
	case searchPrompt:
		m.prompt = noPrompt
		m.reader.searchText, m.reader.match = value, -1
		m.reader.layout()
		if value != "" {
			m.search(1)
		}
	case stepPrompt:
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if replies := m.reader.trajectory.ReplyCount(); err != nil || n < 0 || n > replies {
			m.promptError = fmt.Sprintf("no step %.20q: there are %d", value, replies)
			return nil
		}
		m.prompt = noPrompt
		m.reader.gotoPage(n)
	}
	return nil
}

// applyFilter filters the list. If the text changed, all trajectories are searched for it.
func (m *browser) applyFilter(f query.Filter, line string) tea.Cmd {
	oldText := m.list.filter.Text
	m.list.filter, m.list.filterText = f, strings.TrimSpace(line)
	if f.Text == oldText {
		m.list.update()
		return nil
	}
	m.list.entries, m.list.cursorMoved = map[string]*Entry{}, false
	m.list.update()
	return m.walk()
}

// search goes to the next match in the open trajectory.
func (m *browser) search(direction int) {
	r := m.reader
	switch {
	case r.searchText == "":
		m.setHint(true, "no search text; enter one with /")
	case r.findNext(direction):
		m.setHint(false, "%q", r.searchText)
	default:
		where := [...]string{modeSteps: "this trajectory", modePatch: "the patch", modeLog: "this log"}[r.mode]
		m.setHint(true, "%q not found in %s", r.searchText, where)
	}
}
