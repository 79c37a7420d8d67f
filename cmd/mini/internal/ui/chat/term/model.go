package term

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

// model is the Bubble Tea model of the frontend. Update performs no I/O except saveInput: it
// passes pages to the canvas and input to the handler, which does not block. Only opening a pager
// waits, for the painter to stop. View is empty, because the painter draws; see discardTerminal.
type model struct {
	feed      *feed
	canvas    *canvas
	handler   inputHandler
	suspend   func()                    // nil if the process cannot be suspended
	pager     func(text string) tea.Cmd // opens the user's pager; may be nil
	saveInput func(text string)         // may be nil
	listPaths tea.Cmd                   // returns a pathsMsg; nil if there are no paths, or after its first use
	clock     func() time.Time

	width, height int
	now           time.Time
	state         chat.State
	activitySince time.Time // start of state.Activity
	turn          liveTurn
	question      *pendingQuestion
	questionPage  uint64 // number of the first page with the question
	input         input

	pendingCommands  []string // commands of the reply that are not shown yet
	shownCommand     string   // the last shown command, until it runs or is rejected
	rowsAfterCommand int      // rows written after shownCommand
	pendingMessages  []string // messages that the agent has not received yet
	lastInput        string   // the last input shown

	scrollback   []string // rows that are not on a page yet
	lastRowBlank bool     // the last row of the scrollback is blank, or there is none
	fullText     string   // the last text that was shortened, for the pager
	stepOutput   string   // the output of this step that was shortened
	hint         string   // the result of the last key
	escPressed   bool     // the last key was Esc

	limitReached string      // name of the limit that ended the attempt
	outcomeShown atomic.Bool // the outcome of the attempt has been shown

	failure error // a panic in Update
}

func newModel(earlierInputs []string, saveInput func(text string)) *model {
	feed := newFeed()
	return &model{
		feed: feed, canvas: newCanvas(feed.signal), input: newInput(earlierInputs), saveInput: saveInput,
		clock: time.Now, lastRowBlank: true, width: 80, height: 24,
	}
}

// Messages of Bubble Tea.
type (
	feedMsg        struct{} // the feed has items
	tickMsg        struct{} // sent every second
	pathsMsg       []string // the paths for completion
	pagerClosedMsg struct { // the pager has exited
		err error
	}
)

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (same tea.Model, cmd tea.Cmd) {
	defer func() {
		if r := recover(); r != nil { // the painter would overwrite Bubble Tea's own message
			m.failure = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			same, cmd = m, tea.Quit
		}
	}()
	m.now = m.clock()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case feedMsg:
		m.drainFeed()
	case tea.PasteMsg:
		m.hint = ""
		m.input.paste(msg.Content)
	case tea.KeyPressMsg:
		m.hint = ""
		cmd = m.handleKey(msg)
		if m.listPaths != nil && m.input.pathWord() != "" {
			cmd, m.listPaths = tea.Batch(cmd, m.listPaths), nil
		}
	case pathsMsg:
		m.input.paths.set(msg)
	case pagerClosedMsg:
		if msg.err != nil {
			m.hint = "the pager failed: " + msg.err.Error()
		}
	case tickMsg:
	default:
		return m, nil
	}
	m.publish()
	return m, cmd
}

// View implements tea.Model. It returns an empty view: the painter draws.
func (m *model) View() tea.View { return tea.View{} }

func (m *model) resize(w, h int) {
	if w <= 0 || h <= 0 {
		return // the terminal reports no size
	}
	m.width, m.height = w, h
	m.input.resize(m.columns(), h)
}

// columns returns the maximum width of rows. The last column stays empty: terminals differ in
// where the cursor is after a character in that column.
func (m *model) columns() int { return max(1, m.width-1) }

// publish passes a new page to the painter.
func (m *model) publish() {
	p := m.livePage()
	p.scrollback, p.width, p.height = m.scrollback, m.width, m.height
	m.scrollback = nil
	n := m.canvas.publish(p)
	if m.question != nil && m.questionPage == 0 {
		m.questionPage = n
	}
}

// drainFeed handles the queued items. While the painter lags behind, it leaves them in the feed,
// so that the session waits.
func (m *model) drainFeed() {
	if m.canvas.isFull() {
		return
	}
	items, state := m.feed.drain()
	if state != nil {
		m.setState(*state)
	}
	for _, item := range items {
		m.showItem(item)
	}
}

func (m *model) setState(s chat.State) {
	if s.Activity != m.state.Activity || s.Step != m.state.Step {
		m.activitySince = m.now
	}
	m.state = s
}
