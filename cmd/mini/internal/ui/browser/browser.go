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

// promptKind says what the user enters in the prompt at the bottom.
type promptKind int

const (
	noPrompt     promptKind = iota // no prompt is open
	filterPrompt                   // a filter of the list
	textPrompt                     // text to search all trajectories for
	searchPrompt                   // text to search the open trajectory for
	stepPrompt                     // the number of a step
)

// browser is the Bubble Tea model: the list and the open trajectory, which covers the list.
// Files are read by Bubble Tea commands, except in openAllInPager.
type browser struct {
	source    *Source
	ctx       context.Context //nolint:containedctx // ends when the Bubble Tea program does
	send      func(tea.Msg)   // sends a message to the program
	walkMu    sync.Mutex      // held during a walk of source
	suspend   func()          // nil if the process cannot be suspended
	list      *list
	reader    *reader // nil while the list is shown
	reasoning bool    // show reasoning in trajectories that are opened

	width, height int
	input         textinput.Model
	prompt        promptKind
	promptError   string             // error in the prompt's input
	hint          string             // the result of the last key or command
	hintIsError   bool               // hint is an error
	help          bool               // the help is shown
	helpTop       int                // first visible line of the help
	ticks         int                // number of tick messages so far
	autoOpened    bool               // the only trajectory was opened automatically
	quitting      bool               // draw nothing more
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

// Init implements tea.Model. It restarts a read that Ctrl-Z has interrupted.
func (m *browser) Init() tea.Cmd {
	cmds := []tea.Cmd{m.walk(), m.tick()}
	if r := m.reader; r != nil && r.trajectory == nil && r.err == nil {
		cmds = append(cmds, m.readTrajectory(r.entry))
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

func (m *browser) setHint(isError bool, format string, args ...any) {
	m.hint, m.hintIsError = steps.OneLine(fmt.Sprintf(format, args...)), isError
}

// batchInterval is the minimum time between two batches that a walk sends to the program, except
// before the last batch.
const batchInterval = 100 * time.Millisecond

// walk cancels a running walk and returns a command that walks the source and sends batches of
// entries.
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
		batch := batchMsg{number: number}
		var lastSent time.Time
		flush := func() {
			send(batch)
			batch, lastSent = batchMsg{Batch{Running: batch.Running}, number}, time.Now()
		}
		err := source.Walk(ctx, filter, func(next Batch) error {
			batch.Entries, batch.Notes = append(batch.Entries, next.Entries...), append(batch.Notes, next.Notes...)
			batch.Files, batch.Running = next.Files, batch.Running || next.Running
			if time.Since(lastSent) >= batchInterval {
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

func (m *browser) readTrajectory(entry *Entry) tea.Cmd {
	return func() tea.Msg {
		trajectory, err := OpenTrajectory(entry)
		return openedMsg{entry, trajectory, err}
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

// handleTick reloads the list every two seconds while a run is in progress. It reloads the open
// trajectory every second if its file has changed, the trajectory has no outcome yet, and the user
// follows it or is on its last page.
func (m *browser) handleTick() tea.Cmd {
	m.ticks++
	cmds := []tea.Cmd{m.tick()}
	if r := m.reader; r != nil && r.trajectory != nil && r.trajectory.Outcome == nil && (r.follow || r.isLastPage()) {
		current, entry := r.trajectory, r.entry
		cmds = append(cmds, func() tea.Msg {
			if !current.HasChanged() {
				return nil
			}
			reloaded, err := OpenTrajectory(entry)
			return openedMsg{entry, reloaded, err}
		})
	}
	if m.list.running && !m.list.walking && m.ticks%2 == 0 {
		cmds = append(cmds, m.walk())
	}
	return tea.Batch(cmds...)
}

// openOnlyEntry opens the only trajectory of a source, once, if IsSingle holds for the source.
func (m *browser) openOnlyEntry() tea.Cmd {
	if m.autoOpened || m.reader != nil || len(m.list.visible) != 1 || !m.source.IsSingle() {
		return nil
	}
	m.autoOpened = true
	return m.open(m.list.visible[0])
}

// open opens a trajectory. It keeps the search text of the previous trajectory or of the list.
func (m *browser) open(entry *Entry) tea.Cmd {
	searchText := m.list.filter.Text
	if m.reader != nil && m.reader.searchText != "" {
		searchText = m.reader.searchText
	}
	m.list.cursorMoved = true
	m.reader = &reader{
		entry: entry, reasoning: m.reasoning, searchText: searchText, match: -1,
		width: m.width - 1, height: m.readerHeight(),
	}
	return m.readTrajectory(entry)
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
	if entry := m.list.entries[msg.entry.key()]; entry != nil {
		r.entry, msg.trajectory.Entry = entry, entry
	}
	r.setTrajectory(msg.trajectory)
}

// openPrompt opens the prompt at the bottom.
func (m *browser) openPrompt(kind promptKind, prompt, value string) tea.Cmd {
	input := textinput.New()
	input.Prompt = prompt
	input.SetVirtualCursor(false)
	input.KeyMap.Paste.SetEnabled(false) // would run a clipboard program; users paste with their terminal
	input.CharLimit = 500
	input.SetWidth(max(1, m.width-terminal.Width(prompt)-2))
	input.SetValue(value)
	input.CursorEnd()
	m.input, m.prompt, m.promptError = input, kind, ""
	return m.input.Focus()
}

// handlePromptKey handles a key or a paste while the prompt is open.
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

// submitPrompt handles Enter in the prompt.
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

// applyFilter filters the list. If the text of the filter has changed, it walks the source
// again, which searches all trajectories.
func (m *browser) applyFilter(f query.Filter, typed string) tea.Cmd {
	oldText := m.list.filter.Text
	m.list.filter, m.list.filterText = f, strings.TrimSpace(typed)
	if f.Text == oldText {
		m.list.update()
		return nil
	}
	m.list.entries, m.list.cursorMoved = map[string]*Entry{}, false
	m.list.update()
	return m.walk()
}

// search goes to the next match in the open trajectory or, if direction is -1, to the previous
// one.
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
