package term

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/transcript"
	"github.com/minibench/mini/trajectories"
)

// model is the Bubble Tea model of the frontend. Update performs no I/O except saveInput: it
// passes pages to the screen and input to the handler, which does not block. Only opening a pager
// waits, for the screen to stop. View is empty, because the screen draws; see discardTerminal.
type model struct {
	feed      *feed
	screen    *screen
	handler   inputHandler
	suspend   func()                    // nil if the process cannot be suspended
	pager     func(text string) tea.Cmd // opens the user's pager; may be nil
	saveInput func(text string)         // may be nil
	listPaths tea.Cmd                   // returns a pathsMsg; nil if there are no paths, or after its first use
	clock     func() time.Time

	width, height int
	now           time.Time
	transcript    *transcript.Transcript
	activitySince time.Time // start of the activity of the state
	question      *pendingQuestion
	questionPage  uint64 // number of the first page with the question
	setAside      string // input that was typed before the question; "" if there is none
	enterPressed  bool   // Enter was pressed at the question after a text was set aside
	input         input

	scrollback []string // rows that are not on a page yet
	hint       string   // the result of the last key
	escPressed bool     // the last key was Esc
	repaint    bool     // the next page redraws everything

	outcomeShown atomic.Bool // the outcome of the attempt has been shown

	failure error // a panic in Update
}

func newModel(c Config, out *screen) *model {
	m := &model{feed: newFeed(), screen: out, input: newInput(c.History), saveInput: c.SaveInput, clock: time.Now}
	m.screen.onRoom = m.feed.signal
	m.transcript = transcript.New(false, func(row string) { m.scrollback = append(m.scrollback, row) })
	m.transcript.Now = func() time.Time { return m.now }
	m.resize(80, 24)
	return m
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
		if r := recover(); r != nil { // the screen would overwrite Bubble Tea's own message
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
	case tea.CursorPositionMsg:
		m.screen.setCursorRow(msg.Y)
		return m, nil
	case tickMsg:
	default:
		return m, nil
	}
	m.publish()
	return m, cmd
}

// View implements tea.Model. It returns an empty view: the screen draws.
func (m *model) View() tea.View { return tea.View{} }

func (m *model) resize(w, h int) {
	if w <= 0 || h <= 0 {
		return // the terminal reports no size
	}
	m.width, m.height = w, h
	m.transcript.Resize(m.columns(), h)
	m.input.resize(m.columns(), h)
}

// columns returns the maximum width of rows. The last column stays empty: terminals differ in
// where the cursor is after a character in that column.
func (m *model) columns() int { return max(1, m.width-1) }

// publish passes a new page to the screen.
func (m *model) publish() {
	p := m.livePage()
	p.scrollback, p.width, p.height, p.repaint = m.scrollback, m.width, m.height, m.repaint
	m.scrollback, m.repaint = nil, false
	n := m.screen.publish(p)
	if m.question != nil && m.questionPage == 0 {
		m.questionPage = n
	}
}

// questionVisible reports whether the user can see the open question.
func (m *model) questionVisible() bool {
	return m.questionPage > 0 && m.screen.isVisible(m.questionPage)
}

// drainFeed handles the queued items. While the screen lags behind, it leaves them in the feed,
// so that the session waits.
func (m *model) drainFeed() {
	if m.screen.isFull() {
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
	if s.Activity != m.transcript.State.Activity || s.Step != m.transcript.State.Step {
		m.activitySince = m.now
	}
	m.transcript.State = s
}

// showItem handles one item of the feed.
func (m *model) showItem(item any) {
	switch e := item.(type) {
	case *pendingQuestion:
		m.transcript.Show(e.Question)
		switch isChoice := e.Kind == chat.AskConfirm || e.Kind == chat.AskOther; {
		case e.Draft != "":
			m.input.edit(e.Draft)
		case isChoice && !m.input.isEmpty(): // it was typed for something else
			m.setAside = m.input.value()
			m.input.reset()
			m.hint = "your text comes back after the question"
		}
		m.question, m.questionPage = e, 0
	case questionWithdrawn:
		if m.question == e.question {
			m.closeQuestion()
		}
	case trajectories.Outcome:
		m.transcript.Show(e)
		m.outcomeShown.Store(true)
	default:
		m.transcript.Show(e)
	}
}
